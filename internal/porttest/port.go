// Package porttest finds ports for servers that tests start.
package porttest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Ports are taken from below those that the system gives to outgoing connections:
// none of these can then take the port of a server that is down, nor, dialled in
// vain from that very port, be connected to itself.
const (
	leastPort = 20_000
	portCount = 12_000
)

// Free finds a loopback port on which nothing listens, for this test alone until its end, as a
// server that is down may come back. Tests of other packages run at the same time in processes of
// their own: who has a port over TCP keeps it over UDP, which no server under test uses.
func Free(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := leastPort + rand.IntN(portCount)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		kept, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		// Dialled, as a listener to try would be shared for a moment by a process just being started.
		if c, err := net.Dial("tcp", addr); err == nil {
			if err := errors.Join(c.Close(), kept.Close()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Cleanup(func() {
			if err := kept.Close(); err != nil {
				t.Error(err)
			}
		})
		return port
	}
	t.Fatal("no free port")
	return 0
}
