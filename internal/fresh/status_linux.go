package fresh

import (
	"os"
	"syscall"
	"time"
)

// changedAt is when a file was last changed, in whatever way: unlike the time of its
// content nobody can set it.
func changedAt(info os.FileInfo) (at time.Time, told bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return at, false
	}
	return time.Unix(s.Ctim.Unix()), true
}

// sameStatus reports whether two have one owner, and were last changed at one time.
func sameStatus(a, b os.FileInfo) bool {
	s, ok := a.Sys().(*syscall.Stat_t)
	t, too := b.Sys().(*syscall.Stat_t)
	return ok && too && s.Ctim == t.Ctim && s.Uid == t.Uid && s.Gid == t.Gid
}
