package servertest

import (
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"testing"
)

// Folder makes a folder for a server that User runs, which the test's end removes. It
// lies where that user gets to, unlike the test's own.
func Folder(t testing.TB, user string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tarry-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	as, err := owner(user)
	if err == nil && as != nil {
		err = os.Chown(dir, int(as.uid), int(as.gid))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Run runs a program to its end in a folder, as Command.User would, and returns what it
// wrote. Unless it succeeds the test fails.
func Run(t testing.TB, user, dir, program string, args ...string) string {
	t.Helper()
	cmd := CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	as, err := owner(user)
	if err != nil {
		t.Fatal(err)
	}
	setAttributes(cmd, as)
	runtime.LockOSThread() // the program dies with the thread that has started it
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// owner is who runs a server as a user, if the test is root's; nil: the test's own user.
func owner(name string) (*account, error) {
	if name == "" || os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("who is to run the server: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &account{uid: uint32(uid), gid: uint32(gid)}, nil
}

// account is a user by numbers.
type account struct{ uid, gid uint32 }
