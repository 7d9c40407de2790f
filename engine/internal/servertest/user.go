package servertest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"testing"
)

// Folder makes a directory for a server that runs as user, and removes it at the end of the
// test. That user can reach it, unlike the test's own temporary directory.
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
	give(t, user, dir)
	return dir
}

// give makes a user the owner of a file or directory.
func give(t testing.TB, user, path string) {
	t.Helper()
	as, err := owner(user)
	if err == nil && as != nil {
		err = os.Chown(path, int(as.uid), int(as.gid))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// add appends a text to a user's file.
func add(t testing.TB, user, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	give(t, user, path)
}

// Run runs a program in a directory as a user (see Command.User) and returns its output. If
// the program fails, the test fails.
func Run(t testing.TB, user, dir, program string, args ...string) string {
	t.Helper()
	cmd := CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	as, err := owner(user)
	if err != nil {
		t.Fatal(err)
	}
	setAttributes(cmd, as)
	runtime.LockOSThread() // the program would end with the thread that started it
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// owner returns the account of a user if the test runs as root, and nil otherwise.
func owner(name string) (*account, error) {
	if name == "" || os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("the user that runs the server: %w", err)
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
