//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// reloads returns a channel of wishes to read the --config file again, until stop is called.
func reloads() (wishes <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
