package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/nettest"
)

// serving runs a server for as long as test takes, in a bubble; dial connects to it.
func serving(t *testing.T, test func(t *testing.T, dial func() net.Conn, c *tarry.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := tarry.Open(t.Context(), "mem:", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, stop := context.WithCancel(t.Context())
		ln := nettest.Listen()
		var all sync.WaitGroup
		all.Go(func() {
			if err := newServer(c, 30*time.Second).serve(ctx, ln); err != nil {
				t.Error(err)
			}
		})
		test(t, func() net.Conn {
			conn, err := ln.Dial(ctx, "", "")
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}, c)
		stop()
		all.Wait()
	})
}

// closedAfter waits for the server to close the connection.
func closedAfter(t *testing.T, conn net.Conn) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

func TestSilentFromTheBeginning(t *testing.T) {
	serving(t, func(t *testing.T, dial func() net.Conn, _ *tarry.Client) {
		if d := closedAfter(t, dial()); d != 30*time.Second {
			t.Errorf("closed after %v, want 30s", d)
		}
	})
}

func TestHeartbeatsKeepItOpen(t *testing.T) {
	serving(t, func(t *testing.T, dial func() net.Conn, c *tarry.Client) {
		conn, silent := dial(), dial()
		for range 100 {
			time.Sleep(29*time.Second + 999*time.Millisecond) // of the bubble's time
			if _, err := fmt.Fprintln(conn, "still here"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if q, err := c.Queue(t.Context(), Silent.Queue()); err != nil || q.Scheduled != 1 {
			t.Errorf("%+v, %v; want the one message of the one connection", q, err)
		}
		if d := closedAfter(t, silent); d != 0 {
			t.Error("the other connection was still open")
		}
		if d := closedAfter(t, conn); d != 30*time.Second {
			t.Errorf("closed %v after the last heartbeat, want 30s", d)
		}
	})
}

func TestHangingUpLeavesNothing(t *testing.T) {
	serving(t, func(t *testing.T, dial func() net.Conn, c *tarry.Client) {
		conn := dial()
		synctest.Wait()
		conn.Close()
		synctest.Wait()
		if q, err := c.Queue(t.Context(), Silent.Queue()); err != nil || q.Scheduled+q.Ready+q.Leased > 0 {
			t.Errorf("%+v, %v; want nothing", q, err)
		}
	})
}

func TestStoppingClosesConnections(t *testing.T) {
	serving(t, func(t *testing.T, dial func() net.Conn, _ *tarry.Client) {
		dial() // serving stops the server, which must not wait for this connection
		synctest.Wait()
	})
}

// TestProgramOverTCP runs the program, with a short silence, on a real connection.
func TestProgramOverTCP(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out, stdout := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"--listen", "127.0.0.1:0", "--silence", "1ms"}, stdout, &stderr)
	}()
	var addr string
	if _, err := fmt.Fscanf(out, "listening on %s\n", &addr); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	closedAfter(t, conn)
	stop()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d: %s", got, &stderr)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"--silence", "0s"}, {"--silence", "soon"}, {"more"}, {"--nonsense"}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, &stderr, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%v: exit code %d, %s", args, code, &stderr)
		}
	}
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"--listen", "nowhere"}, &stderr, &stderr); code != 1 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("exit code %d, %q", code, &stderr)
	}
}
