package marks

import (
	"errors"
	"path/filepath"

	"github.com/tarryhq/tarry/engine/logengine/internal/disk"
)

// Sweep removes the files of marks of a directory that keep does not want: those that a crash left
// half written, and those of which newer ones took the place. Other files are left alone. It is
// called while none of them is being written.
func Sweep(fs disk.FS, dir string, keep func(number uint64) bool) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if number, ok := ParseName(name); ok && !keep(number) {
			errs = append(errs, fs.Remove(filepath.Join(dir, name)))
		}
	}
	if len(errs) > 0 {
		errs = append(errs, fs.SyncDir(dir))
	}
	return errors.Join(errs...)
}
