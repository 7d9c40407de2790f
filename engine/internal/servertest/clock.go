package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// clockFile is where, in its folder, a server's libfaketime reads the offset.
const clockFile = "clock"

// clockEnv is the environment in which a server's clock is set off.
//
// Debian's Redis has jemalloc as its malloc, which asks for the time while
// libfaketime still looks for the function that knows it: libc's malloc is put
// before it. The offset is read anew each time, so SetClock takes effect at once.
func clockEnv(library, dir string) []string {
	return []string{
		"LD_PRELOAD=" + library + ":libc.so.6",
		"FAKETIME_TIMESTAMP_FILE=" + filepath.Join(dir, clockFile),
		"FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
	}
}

// setClock writes the offset in one step, as the server, whoever runs it, reads it at
// any time.
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

// forgetClock removes what libfaketime leaves behind when its process is killed.
func forgetClock(pid int) {
	for _, name := range []string{"faketime_shm_%d", "sem.faketime_sem_%d"} {
		_ = os.Remove(filepath.Join("/dev/shm", fmt.Sprintf(name, pid))) // it may not be there
	}
}
