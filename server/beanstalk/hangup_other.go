//go:build !linux

package beanstalk

import "net"

// awaitHangUp cannot tell here whether a client has closed its side.
func awaitHangUp(net.Conn) (gone, ok bool) { return false, false }
