package dispatch

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// nudge makes Go's scheduler check its timers at an exact instant. An idle scheduler sleeps
// in epoll_wait. The timeout of that is in whole milliseconds, so a timer fires up to a
// millisecond late. A timerfd registered with the same epoll ends that sleep on time, and
// the scheduler runs the timers that are due. The descriptor is never read, so it needs no
// goroutine; each expiry is an edge of its own.
type nudge struct {
	file *os.File // nil: not opened yet
	fd   int
}

// arm makes the nudge fire after left, in place of any earlier setting.
func (n *nudge) arm(left time.Duration) {
	if n.file == nil && !n.open() {
		return
	}
	// On an error there is no nudge and the timer is a little late, which does no harm.
	_ = unix.TimerfdSettime(n.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}, nil)
}

func (n *nudge) open() bool {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return false // too many open files, perhaps not for long
	}
	n.file, n.fd = os.NewFile(uintptr(fd), "timerfd"), fd // registers it with epoll
	return true
}

func (n *nudge) close() {
	if n.file != nil {
		_ = n.file.Close()
	}
}
