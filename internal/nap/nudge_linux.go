package nap

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// nudge has Go's scheduler look at its timers at an instant. When nothing runs, the
// scheduler sleeps in epoll_wait, whose time is in whole milliseconds, so that a timer
// fires up to a millisecond late. Here a timer of the kernel, which is exact, is
// registered with the epoll that it sleeps in: its expiry ends that sleep, and the
// scheduler runs the timers that are due. Nobody reads the descriptor, so there is no
// goroutine; each expiry is an edge of its own.
type nudge struct {
	file *os.File // nil: not opened yet
	fd   int
}

// arm has the nudge come once left has passed, and no more when it was to come before.
func (n *nudge) arm(left time.Duration) {
	if n.file == nil && !n.open() {
		return
	}
	// An error means that no nudge comes; the timer is late then, and all is well.
	_ = unix.TimerfdSettime(n.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}, nil)
}

func (n *nudge) open() bool {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return false // too many files, perhaps not for long
	}
	n.file, n.fd = os.NewFile(uintptr(fd), "timerfd"), fd // which registers it
	return true
}

func (n *nudge) close() {
	if n.file != nil {
		_ = n.file.Close()
	}
}
