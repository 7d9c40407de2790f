//go:build unix

package httpengine

import (
	"net"
	"syscall"
)

// canTell is whether alive can.
const canTell = true

// alive reports whether the server has neither hung up on an idle connection nor sent
// what nobody asked for.
func alive(c net.Conn) bool {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN
		return true
	})
	return err == nil && quiet
}
