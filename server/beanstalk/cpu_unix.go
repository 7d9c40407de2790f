//go:build unix

package beanstalk

import (
	"syscall"
	"time"
)

// cpuTimes returns the processor time of the process.
func cpuTimes() (user, system time.Duration) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}
