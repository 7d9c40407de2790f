//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// reloads returns a channel of wishes to read the --config file again, until stop is called.
func reloads() (wishes <-chan os.Signal, stop func()) { return signalled(syscall.SIGHUP) }

// drains returns a channel of wishes that beanstalkd's clients put no more jobs.
func drains() (wishes <-chan os.Signal, stop func()) { return signalled(syscall.SIGUSR1) }

func signalled(by os.Signal) (wishes <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, by)
	return c, func() { signal.Stop(c) }
}
