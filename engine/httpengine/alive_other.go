//go:build !unix

package httpengine

import "net"

// canTell is whether alive can.
const canTell = false

func alive(net.Conn) bool { return false }
