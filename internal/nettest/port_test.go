package nettest

import (
	"net"
	"strconv"
	"testing"
)

// No other test gets the port, also in another process, until the test ends.
func TestFreePort(t *testing.T) {
	claim := func(port int) error {
		c, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			err = c.Close()
		}
		return err
	}
	port := 0
	t.Run("kept", func(t *testing.T) {
		port = FreePort(t)
		if claim(port) == nil {
			t.Error("another one gets it too")
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Fatalf("the server does not: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := claim(port); err != nil {
		t.Errorf("nor does anybody after the test: %v", err)
	}
}
