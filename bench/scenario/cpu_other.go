//go:build !linux

package scenario

import "time"

func own() time.Duration { return 0 }
