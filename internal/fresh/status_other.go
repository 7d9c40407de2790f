//go:build !linux

package fresh

import (
	"os"
	"time"
)

// changedAt is told nowhere else in one way: the content is looked at each time.
func changedAt(os.FileInfo) (at time.Time, told bool) { return at, false }

func sameStatus(os.FileInfo, os.FileInfo) bool { return true }
