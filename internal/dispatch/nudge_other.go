//go:build !linux

package dispatch

import "time"

// nudge does nothing where Go's scheduler sleeps exactly, or cannot be woken.
type nudge struct{}

func (*nudge) arm(time.Duration) {}
func (*nudge) close()            {}
