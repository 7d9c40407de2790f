package beanstalk

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// awaitHangUp waits until the client has closed its side, though what it sent before is not
// read, and reports that. false: the read deadline came first. ok: it can tell.
func awaitHangUp(nc net.Conn) (gone, ok bool) {
	if secure, is := nc.(*tls.Conn); is {
		nc = secure.NetConn()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false, false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true, true
	}
	_ = raw.Read(func(fd uintptr) bool { // it fails at the deadline
		at := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(at, 0)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll(at, 0)
		}
		gone = n > 0
		return gone
	})
	return gone, true
}
