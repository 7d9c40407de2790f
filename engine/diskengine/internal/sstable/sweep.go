package sstable

import "github.com/tarryhq/tarry/engine/diskengine/internal/vfs"

// Sweep removes the sstables in a directory that keep does not want: half-written ones that a
// crash left, and those that were merged into others. It leaves other files alone. It must not
// be called while an sstable is written.
func Sweep(fs vfs.FS, dir string, keep func(number uint64) bool) error {
	return vfs.Sweep(fs, dir, func(name string) bool {
		number, ok := parseName(name)
		return ok && !keep(number)
	})
}
