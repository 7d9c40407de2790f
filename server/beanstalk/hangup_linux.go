package beanstalk

import (
	"crypto/tls"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the client has closed its side, though what it sent before is not read.
func hungUp(nc net.Conn) (gone bool) {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		at := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, _ := unix.Poll(at, 0) // an interrupted one finds nothing
		gone = n > 0
	})
	return gone || err != nil
}
