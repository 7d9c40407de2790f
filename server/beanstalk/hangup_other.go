//go:build !linux

package beanstalk

import "net"

// hungUp would report whether the client has closed its side. Keepalive must find out.
func hungUp(net.Conn) bool { return false }
