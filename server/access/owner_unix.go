//go:build unix

package access

import (
	"errors"
	"os"
	"syscall"
)

// keepOwner gives a file the owner of the one whose place it takes: what root writes the
// server has to be able to read.
func keepOwner(f *os.File, old os.FileInfo) error {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok || int(was.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(was.Uid), int(was.Gid))
}

// syncDir makes the names in a folder durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
