package servertest

import (
	"fmt"
	"syscall"
	"testing"
)

// SmallDisk mounts a disk in memory, of a size in bytes, for a server that runs as user. The
// end of the test unmounts it. Without the right to mount, the test is skipped.
func SmallDisk(t testing.TB, user string, bytes int) (folder string, grow func(bytes int)) {
	t.Helper()
	folder = Folder(t, user)
	mount := func(flags uintptr, bytes int) error {
		return syscall.Mount("tmpfs", folder, "tmpfs", flags, fmt.Sprintf("size=%d", bytes))
	}
	if err := mount(0, bytes); err != nil {
		t.Skipf("no disk can be filled here, as none can be mounted: %v; run the tests as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	give(t, user, folder)
	return folder, func(bytes int) {
		t.Helper()
		if err := mount(syscall.MS_REMOUNT, bytes); err != nil {
			t.Fatal(err)
		}
	}
}
