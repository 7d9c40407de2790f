package nettest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports are below the system's ephemeral range. So no outgoing connection can take the
// port of a server that is down, or connect to itself by dialling from that port.
const (
	leastPort = 20_000
	portCount = 12_000
)

// FreePort returns a loopback port on which nothing listens. It is reserved until the test
// ends, since the test's server may restart. Other processes run tests at the same time, so
// the reservation is the same port over UDP, which no server under test uses.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := leastPort + rand.IntN(portCount)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		reservation, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		// Dial instead of listening: a process being started could inherit a listener for a
		// moment.
		if c, err := net.Dial("tcp", addr); err == nil {
			if err := errors.Join(c.Close(), reservation.Close()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Cleanup(func() {
			if err := reservation.Close(); err != nil {
				t.Error(err)
			}
		})
		return port
	}
	t.Fatal("no free port")
	return 0
}
