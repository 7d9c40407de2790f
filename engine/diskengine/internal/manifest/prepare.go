package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// The directories of a store, and the file that is beside them while a store is made from
// another one or a backup: a directory with that file is not opened.
const (
	LogName    = "log"
	TablesName = "runs"
	Restoring  = "RESTORING"
)

// ErrRestoring says that a directory holds only part of a store.
var ErrRestoring = errors.New("a restore or salvage to it was cut off")

// ErrTaken says that a directory holds something.
var ErrTaken = errors.New("the directory is not empty")

// Vacant returns why no store can be made in a directory: it is neither missing nor empty.
func Vacant(f vfs.FS, dir string) error {
	names, err := f.List(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(names) > 0:
		return fmt.Errorf("%w: %s holds %s", ErrTaken, dir, names[0])
	}
	return nil
}

// Prepare begins a store that is made from another one, in a vacant directory. Complete ends
// it.
func Prepare(f vfs.FS, dir string) error {
	if err := Vacant(f, dir); err != nil {
		return err
	}
	if err := vfs.MkdirAll(f, dir); err != nil {
		return err
	}
	if err := errors.Join(vfs.WriteFile(f, filepath.Join(dir, Restoring), nil), f.SyncDir(dir)); err != nil {
		return err
	}
	for _, name := range []string{LogName, TablesName} {
		if err := f.Mkdir(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return f.SyncDir(dir)
}

// Complete makes such a store count, durably. All else in it must be durable before.
func Complete(f vfs.FS, dir string, s State) error {
	if _, err := Create(f, dir, s); err != nil {
		return err
	}
	return errors.Join(f.Remove(filepath.Join(dir, Restoring)), f.SyncDir(dir))
}
