// Package nettest is what tests of servers and clients need: certificates, free ports, and a
// network in memory for tests in virtual time.
package nettest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
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

// Listener accepts the connections of Dial, over net.Pipe.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns a listener of connections in memory.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial returns the client end of a connection once it is accepted. It ignores the address.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- near:
		return far, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends waiting calls of Dial and Accept. It may be called again.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a placeholder address.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "pipe"} }
