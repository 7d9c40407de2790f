//go:build unix

package secretfile

import (
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
