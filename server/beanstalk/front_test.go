package beanstalk

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
)

// front is a server on the memory engine.
type front struct {
	*Server
	c  *tarry.Client
	at string
}

// serve starts a server, with lower limits. It ends with the test.
func serve(t testing.TB, cfg *Config, lower ...func(*Server)) *front {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, ln, cfg, lower...)
}

func serveOn(t testing.TB, ln net.Listener, cfg *Config, lower ...func(*Server)) *front {
	t.Helper()
	eng := memengine.New(nil)
	c := tarry.New(eng, nil)
	s, err := New(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range lower {
		change(s)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.Background(), ln) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = c.Close()
		_ = eng.Close()
	})
	return &front{s, c, ln.Addr().String()}
}

// client is a connection to a server.
type client struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func (f *front) dial(t testing.TB) *client {
	t.Helper()
	nc, err := net.Dial("tcp", f.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(time.Minute))
	return &client{t, nc, bufio.NewReader(nc)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// line returns the next line of the answers; "EOF": there is none.
func (c *client) line() string {
	c.t.Helper()
	l, err := c.in.ReadString('\n')
	if err != nil {
		return "EOF"
	}
	return strings.TrimSuffix(l, "\r\n")
}

// do sends a command and returns the first line of its answer; what follows a line that
// announces a body is read too.
func (c *client) do(command string) string {
	c.t.Helper()
	c.send(command + "\r\n")
	return c.answer()
}

func (c *client) answer() string {
	c.t.Helper()
	l := c.line()
	var id, n int
	if k, _ := fmt.Sscanf(l, "RESERVED %d %d", &id, &n); k < 2 {
		if k, _ = fmt.Sscanf(l, "FOUND %d %d", &id, &n); k < 2 {
			if k, _ = fmt.Sscanf(l, "OK %d", &n); k < 1 {
				return l
			}
		}
	}
	if _, err := c.in.Discard(n + 2); err != nil {
		c.t.Fatal(err)
	}
	return l
}

// put puts a job, and returns its id.
func (c *client) put(pri, delay, ttr, size int) string {
	c.t.Helper()
	got := c.do(fmt.Sprintf("put %d %d %d %d\r\n%s", pri, delay, ttr, size, strings.Repeat("x", size)))
	id, ok := strings.CutPrefix(got, "INSERTED ")
	if !ok {
		c.t.Fatal(got)
	}
	return id
}

// wants fails the test unless an answer begins with a text.
func (c *client) wants(command, want string) {
	c.t.Helper()
	if got := c.do(command); !strings.HasPrefix(got, want) {
		c.t.Errorf("%.40q: %.80q, want %q", command, got, want)
	}
}
