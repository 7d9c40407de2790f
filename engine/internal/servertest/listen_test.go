package servertest_test

import (
	"io"
	"net"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Connections are served each by itself, and cut when the test has ended.
func TestListenServesUntilTheTestEnds(t *testing.T) {
	t.Parallel()
	var conns []net.Conn
	t.Run("test", func(t *testing.T) {
		addr := servertest.Listen(t, func(c net.Conn) {
			_, _ = io.Copy(c, c)
		})
		for range 3 {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
		}
		for _, c := range conns {
			got := make([]byte, 4)
			if _, err := io.WriteString(c, "ping"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, got); err != nil || string(got) != "ping" {
				t.Errorf("read %q, %v", got, err)
			}
		}
	})
	for _, c := range conns {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a connection outlived its test")
		}
		_ = c.Close()
	}
}
