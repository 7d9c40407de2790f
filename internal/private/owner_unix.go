//go:build unix

package private

import (
	"os"
	"syscall"
)

// hasModes: files have owners and modes.
const hasModes = true

// ofRoot reports whether root owns a file.
func ofRoot(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid == 0
}
