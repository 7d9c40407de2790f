//go:build unix

package access

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// What takes the place of a file is for those who were to read that.
func TestFileKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to others")
	}
	f := newFile(t)
	create(t, f, Token{Name: "a", Scopes: Push, Queues: []string{"*"}})
	for _, owner := range []struct {
		uid, gid uint32
		mode     os.FileMode
	}{{0, 4711, 0o640}, {4711, 4712, 0o600}, {0, 0, 0o400}} {
		if err := errors.Join(os.Chown(string(f), int(owner.uid), int(owner.gid)), os.Chmod(string(f), owner.mode)); err != nil {
			t.Fatal(err)
		}
		create(t, f, Token{Name: fmt.Sprint(owner.gid), Scopes: Push, Queues: []string{"*"}})
		info, err := os.Stat(string(f))
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != owner.uid || s.Gid != owner.gid || info.Mode() != owner.mode {
			t.Errorf("it is of %d and %d with the mode %o, not as it was: %v", s.Uid, s.Gid, info.Mode(), owner)
		}
	}
}
