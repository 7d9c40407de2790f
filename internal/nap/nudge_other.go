//go:build !linux

package nap

import "time"

// nudge is nothing where Go's scheduler sleeps as long as it should, or cannot be woken.
type nudge struct{}

func (*nudge) arm(time.Duration) {}
func (*nudge) close()            {}
