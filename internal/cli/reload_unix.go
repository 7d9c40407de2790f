//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// reloads tells of each wish to have the --config file read again, until stop is called.
func reloads() (wishes <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
