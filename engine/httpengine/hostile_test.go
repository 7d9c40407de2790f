package httpengine

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// scripted is the engine of a server whose connections a function serves.
func scripted(t *testing.T, serve func(c net.Conn, in *bufio.Reader)) (e *Engine, conns *atomic.Int32) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = new(atomic.Int32)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			go func() {
				defer c.Close()
				serve(c, bufio.NewReader(c))
			}()
		}
	}()
	tr := ownTransport(nil)
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = ln.Close()
	})
	base := &url.URL{Scheme: "http", Host: ln.Addr().String()}
	return &Engine{timeout: time.Minute, base: base, client: &http.Client{Transport: tr}}, conns
}

// post makes a request and returns what is answered.
func (e *Engine) post(ctx context.Context) (string, error) {
	b, err := e.roundTrip(ctx, call{op: "push", method: http.MethodPost, path: "/v1/x", body: []byte("x")})
	if err != nil {
		return "", err
	}
	defer b.free()
	return string(b.b), nil
}

// read reads one request.
func read(in *bufio.Reader) error {
	req, err := http.ReadRequest(in)
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return err
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// Heads without an end do not fill memory.
func TestHeadsAreBounded(t *testing.T) {
	for name, part := range map[string]string{
		"line":      strings.Repeat("x", 64<<10),
		"headers":   "X-" + strings.Repeat("x", 100) + ": y\r\n",
		"continues": "\r\nHTTP/1.1 100 Continue\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			const enough = 16 << 20
			var sent atomic.Int64
			e, _ := scripted(t, func(c net.Conn, in *bufio.Reader) {
				if read(in) != nil {
					return
				}
				start := "HTTP/1.1 200 OK\r\n"
				if name == "continues" {
					start = "HTTP/1.1 100 Continue\r\n"
				}
				_, err := io.WriteString(c, start)
				for many := strings.Repeat(part, 1+64<<10/len(part)); err == nil && sent.Load() < enough; sent.Add(int64(len(many))) {
					_, err = io.WriteString(c, many)
				}
			})
			if _, err := e.post(t.Context()); !errors.Is(err, engine.ErrUnavailable) || sent.Load() >= enough {
				t.Errorf("after %d bytes: %v", sent.Load(), err)
			}
		})
	}
}

// Of a connection that ends as a request is made on it nobody knows whether the request
// was carried out.
func TestRequestsAreNotRepeated(t *testing.T) {
	var requests atomic.Int32
	e, conns := scripted(t, func(c net.Conn, in *bufio.Reader) {
		if read(in) != nil {
			return
		}
		requests.Add(1)
		_, _ = io.WriteString(c, fine)
		if read(in) == nil {
			requests.Add(1)
		}
	})
	if got, err := e.post(t.Context()); got != "ok" || err != nil {
		t.Fatal(got, err)
	}
	if _, err := e.post(t.Context()); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), engine.HintUnknown) {
		t.Errorf("an answer of nobody: %v", err)
	}
	if requests.Load() != 2 || conns.Load() != 1 {
		t.Errorf("%d requests on %d connections", requests.Load(), conns.Load())
	}
}

// An answer that has no sense, or is cut, is none.
func TestGarbageIsNoAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":        "",
		"garbage":        "\x00\x01\x02\r\n\r\n",
		"half a head":    "HTTP/1.1 200 OK\r\nContent-Le",
		"half a body":    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
		"half a chunk":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal",
		"no last chunk":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"no chunk":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"two lengths":    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"negative":       "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nab",
		"only continues": "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := scripted(t, func(c net.Conn, in *bufio.Reader) {
				if read(in) == nil {
					_, _ = io.WriteString(c, answer)
				}
			})
			if got, err := e.post(t.Context()); !errors.Is(err, engine.ErrUnavailable) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// A context that ends, or a time that is over, while the body of an answer comes ends
// the call as it does before.
func TestContextEndsInTheMiddleOfAnAnswer(t *testing.T) {
	half := make(chan struct{}, 1)
	e, _ := scripted(t, func(c net.Conn, in *bufio.Reader) {
		if read(in) == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
			half <- struct{}{}
			_ = read(in)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := e.post(ctx)
		done <- err
	}()
	<-half
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	e.timeout = 10 * time.Millisecond
	if _, err := e.post(t.Context()); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), engine.HintUnknown) {
		t.Errorf("overdue: %v", err)
	}
}

// What a server says that is none is not repeated at length.
func TestErrorsOfGarbageAreShort(t *testing.T) {
	e, _ := scripted(t, func(c net.Conn, in *bufio.Reader) {
		if read(in) == nil {
			_, _ = io.WriteString(c, strings.Repeat("\x00", maxHead/2)+"\r\n\r\n")
		}
	})
	if _, err := e.post(t.Context()); !errors.Is(err, engine.ErrUnavailable) || len(err.Error()) > 2*engine.MaxReason {
		t.Errorf("%d bytes, %.100v", len(err.Error()), err)
	}
}

// An answer without an end does not fill memory.
func TestAnswersAreBounded(t *testing.T) {
	for name, head := range map[string]string{
		"a length": "Content-Length: 1000000000000\r\n\r\n",
		"chunks":   "Transfer-Encoding: chunked\r\n\r\n",
		"no end":   "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			chunk := strings.Repeat(" ", 1<<20)
			if name == "chunks" {
				chunk = "100000\r\n" + chunk + "\r\n"
			}
			var sent atomic.Int64
			e, _ := scripted(t, func(c net.Conn, in *bufio.Reader) {
				if read(in) != nil {
					return
				}
				_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"+head)
				for ; err == nil && sent.Load() < 2*answerMost; sent.Add(1 << 20) {
					_, err = io.WriteString(c, chunk)
				}
			})
			_, err := e.post(t.Context())
			if !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "longer than the 67108864 bytes") || sent.Load() >= 2*answerMost {
				t.Errorf("after %d bytes: %v", sent.Load(), err)
			}
		})
	}
}

// What a page or a lease may bring by the limits of the server is not too long.
func TestLongestAnswer(t *testing.T) {
	e := &Engine{}
	e.limits.MaxBody = 3 << 20
	if c, _ := leaseCall(wire.LeaseRequest{Queues: []string{"q"}, Max: 1000}); e.longest(&c) < 1000*(4<<20) {
		t.Errorf("a thousand messages of 3 MiB do not fit in %d bytes", e.longest(&c))
	}
}
