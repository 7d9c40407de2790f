package servertest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Listen runs serve on each connection to an address, for servers that misbehave as real ones
// do not. The end of the test closes the connections, and waits for serve to return.
func Listen(t testing.TB, serve func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				defer context.AfterFunc(t.Context(), func() { _ = c.Close() })()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // once
		all.Wait()
	})
	return l.Addr().String()
}
