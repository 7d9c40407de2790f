package run

import "github.com/tarryhq/tarry/engine/diskengine/internal/disk"

// Sweep removes the runs of a directory that keep does not want: those that a crash left
// half written, or that were merged into others. Other files are left alone. It is called
// while none of them is being written.
func Sweep(fs disk.FS, dir string, keep func(number uint64) bool) error {
	return disk.Sweep(fs, dir, func(name string) bool {
		number, ok := parseName(name)
		return ok && !keep(number)
	})
}
