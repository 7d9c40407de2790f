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

	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/tarrytest"
)

// serving runs a server for as long as test takes, in a bubble; dial connects to it.
func serving(t *testing.T, test func(t *testing.T, dial func() net.Conn, q *tarrytest.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := tarrytest.NewInBubble(t)
		ctx, stop := context.WithCancel(t.Context())
		ln := nettest.Listen()
		var all sync.WaitGroup
		all.Go(func() {
			if err := newServer(q.Client, 30*time.Second).serve(ctx, ln); err != nil {
				t.Error(err)
			}
		})
		test(t, func() net.Conn {
			conn, err := ln.Dial(ctx, "", "")
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}, q)
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
	serving(t, func(t *testing.T, dial func() net.Conn, _ *tarrytest.Client) {
		if d := closedAfter(t, dial()); d != 30*time.Second {
			t.Errorf("closed after %v, want 30s", d)
		}
	})
}

func TestHeartbeatsKeepItOpen(t *testing.T) {
	serving(t, func(t *testing.T, dial func() net.Conn, q *tarrytest.Client) {
		conn, silent := dial(), dial()
		for range 100 {
			q.Advance(29*time.Second + 999*time.Millisecond)
			if _, err := fmt.Fprintln(conn, "still here"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if got, err := q.Queue(t.Context(), Silent.Queue()); err != nil || got.Scheduled != 1 {
			t.Errorf("%+v, %v; want the one message of the one connection", got, err)
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
	serving(t, func(t *testing.T, dial func() net.Conn, q *tarrytest.Client) {
		conn := dial()
		synctest.Wait()
		conn.Close()
		synctest.Wait()
		tarrytest.RequireNothingPushed(t, q)
	})
}

func TestStoppingClosesConnections(t *testing.T) {
	serving(t, func(t *testing.T, dial func() net.Conn, _ *tarrytest.Client) {
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
