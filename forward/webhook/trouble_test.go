package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/nettest"
)

// bubble serves answer in a bubble, to a target of its own, and returns what Send says and
// after how long.
func bubble(t *testing.T, cfg Config, answer func(conn net.Conn)) (took time.Duration, err error) {
	synctest.Test(t, func(t *testing.T) {
		p := nettest.Listen()
		var conns sync.WaitGroup
		conns.Go(func() { acceptRaw(p, &conns, answer) })
		cfg.URL, cfg.Dial = "http://shop.example/paid", p.Dial
		target := open(t, &cfg)
		began := time.Now()
		err = target.Send(t.Context(), message(""))
		took = time.Since(began)
		target.Close()
		p.Close()
		conns.Wait()
	})
	return took, err
}

// drip writes s a byte a second, and goes on with nothing for as long as it is listened to.
func drip(conn net.Conn, s string) {
	for i := range s {
		if _, err := conn.Write([]byte{s[i]}); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
	_, _ = io.Copy(io.Discard, conn)
}

func TestNothingThatIsSlowHangs(t *testing.T) {
	for what, c := range map[string]struct {
		answer func(net.Conn)
		want   string
		within time.Duration
	}{
		"no answer":          {func(c net.Conn) { drip(c, "") }, "http://shop.example did not answer within 10s", 10 * time.Second},
		"a head that drips":  {func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }, "did not answer within 10s", 10 * time.Second},
		"a 2xx's body drips": {func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"); drip(c, "a") }, "", time.Second},
		"a 5xx's body drips": {func(c net.Conn) { io.WriteString(c, "HTTP/1.1 500 OK\r\nContent-Length: 9\r\n\r\n"); drip(c, "sorry") }, "answered 500 Internal Server Error: s", time.Second},
		"informed for ever":  {func(c net.Conn) { inform(c) }, "shop.example", 10 * time.Second},
		"another protocol": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			drip(c, "")
		}, "answered 101 Switching Protocols", 0},
		"a head without end":   {func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nA: "+strings.Repeat("a", 2*maxHeader)) }, "headers exceeded 65536 bytes", 0},
		"closed":               {func(net.Conn) {}, "shop.example: ", 0},
		"closed within a head": {func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nA") }, "shop.example: ", 0},
		"closed within a 2xx":  {func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na") }, "", 0},
		"closed within a 5xx":  {func(c net.Conn) { io.WriteString(c, "HTTP/1.1 503 OK\r\nContent-Length: 9\r\n\r\nsorry") }, "answered 503 Service Unavailable: sorry", 0},
		"no HTTP":              {func(c net.Conn) { io.WriteString(c, "220 mail.example ESMTP\r\n") }, "shop.example: ", 0},
	} {
		took, err := bubble(t, Config{}, c.answer)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || took != c.within {
			t.Errorf("%s: after %s %v, want after %s %q", what, took, err, c.within, c.want)
		}
	}
}

func inform(conn net.Conn) {
	for {
		if _, err := io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

func TestRetryAfterADateInVirtualTime(t *testing.T) {
	answer := func(after time.Duration) func(net.Conn) {
		return func(c net.Conn) {
			fmt.Fprintf(c, "HTTP/1.1 503 Later\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", time.Now().Add(after).UTC().Format(http.TimeFormat))
		}
	}
	for after, want := range map[time.Duration]string{
		30 * time.Second: "retry in 30s: ",
		5 * time.Second:  "retry in 15s: ",
		48 * time.Hour:   "retry in 2h0m0s: ",
	} {
		if _, err := bubble(t, Config{MaxRetryAfter: 2 * time.Hour}, answer(after)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", after, err, want)
		}
	}
}

func TestDialingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under sync.WaitGroup
		target := open(t, &Config{URL: "http://shop.example", Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			under.Add(1)
			defer under.Done()
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := target.Send(ctx, message("")); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "http://shop.example: ") {
			t.Errorf("the caller's context has ended: %v", err)
		}
		if err := target.Send(t.Context(), message("")); err == nil || !strings.Contains(err.Error(), "did not answer within 10s") {
			t.Errorf("no answer: %v", err)
		}
		target.Close()
		under.Wait() // else the bubble is dead
	})
}

// A Send that waits for a connection takes one that another has given back; the one that
// is being made for it ends with Close.
func TestCloseEndsConnectionsThatAreBeingMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := nettest.Listen()
		defer p.Close()
		s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) })}
		go s.Serve(p)
		defer s.Close()
		var dials, ended atomic.Int64
		target := open(t, &Config{URL: "http://shop.example", Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials.Add(1) == 1 {
				return p.Dial(ctx, network, address)
			}
			<-ctx.Done()
			ended.Add(1)
			return nil, ctx.Err()
		}})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if err := target.Send(t.Context(), message("x")); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		target.Close()
		synctest.Wait()
		if dials.Load() != 2 || ended.Load() != 1 {
			t.Errorf("%d connections were made, %d of them ended with Close", dials.Load(), ended.Load())
		}
	})
}

func TestCloseWaitsForSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := nettest.Listen()
		defer p.Close()
		answered := make(chan struct{})
		s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(3 * time.Second)
			close(answered)
		})}
		go s.Serve(p)
		defer s.Close()
		target := open(t, &Config{URL: "http://shop.example", Dial: p.Dial})
		sent := make(chan error, 1)
		go func() { sent <- target.Send(t.Context(), message("x")) }()
		synctest.Wait()
		for range 2 {
			if err := target.Close(); err != nil {
				t.Error(err)
			}
			select {
			case <-answered:
			default:
				t.Error("Close has not waited")
			}
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if err := target.Send(t.Context(), message("x")); !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestResetWithinAnAnswer(t *testing.T) {
	for head, want := range map[string]string{
		"":                  "127.0.0.1",
		"HTTP/1.1 200 OK\r": "127.0.0.1",
		"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nabc": "",
	} {
		at := serveRaw(t, func(c net.Conn) {
			io.WriteString(c, head)
			if strings.HasSuffix(head, "abc") {
				// The head must have been read before the reset throws away what was not.
				_, _ = c.Read(make([]byte, 1))
			}
			_ = c.(*net.TCPConn).SetLinger(0)
		})
		err := open(t, &Config{URL: at, Options: local()}).Send(t.Context(), message(""))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("after %q: %v", head, err)
		}
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	const senders, each = 64, 20
	var made, served atomic.Int64
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if served.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write(make([]byte, 10_000))
	})
	target := open(t, &Config{URL: at, Options: local()})
	dial := target.transport.DialContext
	target.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		made.Add(1)
		return dial(ctx, network, address)
	}
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for range each {
				_ = target.Send(t.Context(), message("x"))
			}
		})
	}
	all.Wait()
	// A connection is free again a moment after its answer was read.
	if made.Load() > 4*senders || served.Load() != senders*each {
		t.Errorf("%d connections for %d messages, %d served", made.Load(), senders*each, served.Load())
	}
}

// A connection that was kept may have been closed by the other side, which costs no
// attempt.
func TestKeptConnectionThatWasClosed(t *testing.T) {
	var calls atomic.Int64
	at := serveRaw(t, func(c net.Conn) {
		calls.Add(1)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		_ = readHead(c) // the next one is read, and not answered
	})
	target := open(t, &Config{URL: at, Options: local()})
	for range 3 {
		if err := target.Send(t.Context(), message("")); err != nil {
			t.Fatal(err)
		}
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}
