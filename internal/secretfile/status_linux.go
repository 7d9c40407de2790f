package secretfile

import (
	"os"
	"syscall"
	"time"
)

// changedAt returns the ctime of a file, which unlike the mtime cannot be set.
func changedAt(info os.FileInfo) (at time.Time, known bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return at, false
	}
	return time.Unix(s.Ctim.Unix()), true
}

// sameStatus reports whether two states have the same owner and ctime.
func sameStatus(a, b os.FileInfo) bool {
	s, ok := a.Sys().(*syscall.Stat_t)
	t, too := b.Sys().(*syscall.Stat_t)
	return ok && too && s.Ctim == t.Ctim && s.Uid == t.Uid && s.Gid == t.Gid
}
