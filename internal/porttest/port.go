// Package porttest finds ports for servers that tests start.
package porttest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports are taken from below those that the system gives to outgoing connections:
// none of these can then take the port of a server that is down, nor, dialled in
// vain from that very port, be connected to itself.
const (
	leastPort = 20_000
	portCount = 12_000
)

// givenPorts are kept until the test's end, as a server that is down may come back.
var givenPorts sync.Map

// Free finds a loopback port on which nothing listens, for this test alone.
func Free(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := leastPort + rand.IntN(portCount)
		if _, given := givenPorts.LoadOrStore(port, true); given {
			continue
		}
		t.Cleanup(func() { givenPorts.Delete(port) })
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no free port")
	return 0
}
