package sstable

import "github.com/tarryhq/tarry/engine/diskengine/internal/vfs"

// Sweep removes the sstables of a directory that keep does not want: those that a crash left
// half written, or that were merged into others. Other files are left alone. It is called
// while none of them is being written.
func Sweep(fs vfs.FS, dir string, keep func(number uint64) bool) error {
	return vfs.Sweep(fs, dir, func(name string) bool {
		number, ok := parseName(name)
		return ok && !keep(number)
	})
}
