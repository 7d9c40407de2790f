package deletions

import "github.com/tarryhq/tarry/engine/diskengine/internal/vfs"

// Sweep removes the files of deletion bitmaps of a directory that keep does not want: those that a crash left
// half written, and those of which newer ones took the place. Other files are left alone. It is
// called while none of them is being written.
func Sweep(fs vfs.FS, dir string, keep func(number uint64) bool) error {
	return vfs.Sweep(fs, dir, func(name string) bool {
		number, ok := ParseName(name)
		return ok && !keep(number)
	})
}
