package secretfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace replaces a file by what write writes, so that a reader never sees half of it. The
// new one has the owner and mode of the old. A file that is missing is made. Of two calls at
// a time one fails.
func Replace(file string, write func(next *os.File) error) error {
	path, err := filepath.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = file, nil
	}
	if err != nil {
		return err
	}
	next, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s.new is there: somebody is changing %[1]s (if nobody is, remove it)", path)
	}
	if err != nil {
		return err
	}
	if err := fill(next, path, write); err != nil {
		return errors.Join(err, next.Close(), os.Remove(next.Name()))
	}
	if err := errors.Join(next.Close(), os.Rename(next.Name(), path)); err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// fill makes next what takes the place of the file.
func fill(next *os.File, path string, write func(next *os.File) error) error {
	if info, err := os.Stat(path); err == nil {
		if err := keepOwner(next, info); err != nil {
			return fmt.Errorf("%s would get another owner (change it as its owner, or as root): %w", path, err)
		}
	}
	if err := write(next); err != nil {
		return err
	}
	return next.Sync()
}
