package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// clockFile is the file in a server's directory with the offset for libfaketime.
const clockFile = "clock"

// clockEnv is the environment of a server with a shifted clock.
//
// Debian's Redis needs libc's malloc loaded first: its jemalloc asks for the time before
// libfaketime has found the real function. Without a cache the offset is read each time, so
// SetClock takes effect at once.
func clockEnv(library, dir string) []string {
	return []string{
		"LD_PRELOAD=" + library + ":libc.so.6",
		"FAKETIME_TIMESTAMP_FILE=" + filepath.Join(dir, clockFile),
		"FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
	}
}

// setClock writes the offset atomically: the server may read it at any time.
func setClock(t testing.TB, dir, spec string) {
	t.Helper()
	path := filepath.Join(dir, clockFile)
	if err := os.WriteFile(path+".new", []byte(spec+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// forgetClock removes the files that libfaketime leaves when its process is killed.
func forgetClock(pid int) {
	for _, name := range []string{"faketime_shm_%d", "sem.faketime_sem_%d"} {
		_ = os.Remove(filepath.Join("/dev/shm", fmt.Sprintf(name, pid))) // it may not be there
	}
}
