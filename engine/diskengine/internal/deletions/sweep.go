package deletions

import "github.com/tarryhq/tarry/engine/diskengine/internal/vfs"

// Sweep removes the files of deletion bitmaps in a directory that keep does not want:
// half-written ones that a crash left, and those that newer ones replaced. It leaves other
// files alone. It must not be called while such a file is written.
func Sweep(fs vfs.FS, dir string, keep func(number uint64) bool) error {
	return vfs.Sweep(fs, dir, func(name string) bool {
		number, ok := ParseName(name)
		return ok && !keep(number)
	})
}
