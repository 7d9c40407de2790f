//go:build unix

package secretfile

import (
	"errors"
	"os"
	"syscall"
)

// hasModes is true: files have an owner and a mode that restrict access.
const hasModes = true

// ownedByRoot reports whether root owns a file.
func ownedByRoot(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid == 0
}

// keepOwner gives a file the owner, group and mode of the file it replaces. So the server can
// read a file that root rewrites.
func keepOwner(f *os.File, old os.FileInfo) error {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if is, ok := info.Sys().(*syscall.Stat_t); !ok || is.Uid != was.Uid || is.Gid != was.Gid {
		if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil {
			return err
		}
	}
	return f.Chmod(old.Mode().Perm())
}

// syncDir makes the file names in a folder durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
