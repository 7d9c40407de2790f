package httpengine

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// scripted serves each connection with a function that is told which one it is, from 0.
func scripted(t *testing.T, serve func(n int, c net.Conn, in *bufio.Reader)) (tr *transport, conns *atomic.Int32) {
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
			n := int(conns.Add(1)) - 1
			go func() {
				defer c.Close()
				serve(n, c, bufio.NewReader(c))
			}()
		}
	}()
	tr = newTransport(ln.Addr().String())
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = ln.Close()
	})
	return tr, conns
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
func TestTransportBoundsHeads(t *testing.T) {
	for name, part := range map[string]string{
		"line":      strings.Repeat("x", 64<<10),
		"headers":   "X-" + strings.Repeat("x", 100) + ": y\r\n",
		"continues": "\r\nHTTP/1.1 100 Continue\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			tr, _ := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
				if read(in) != nil {
					return
				}
				start := "HTTP/1.1 200 OK\r\n"
				if name == "continues" {
					start = "HTTP/1.1 100 Continue\r\n"
				}
				_, err := io.WriteString(c, start)
				for many := strings.Repeat(part, 1+64<<10/len(part)); err == nil && sent.Load() < 16<<20; sent.Add(int64(len(many))) {
					_, err = io.WriteString(c, many)
				}
			})
			if _, _, err := tr.post(t.Context(), nil); !errors.Is(err, errHead) {
				t.Errorf("after %d bytes: %v", sent.Load(), err)
			}
		})
	}
}

// Of a connection that ends as a request is made on it nobody knows whether the request
// was carried out.
func TestTransportDoesNotRepeat(t *testing.T) {
	var requests atomic.Int32
	tr, conns := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
		if read(in) != nil {
			return
		}
		requests.Add(1)
		_, _ = io.WriteString(c, fine)
		if read(in) == nil {
			requests.Add(1)
		}
	})
	if _, got, err := tr.post(t.Context(), []byte("x")); got != "ok" || err != nil {
		t.Fatal(got, err)
	}
	if _, _, err := tr.post(t.Context(), []byte("x")); err == nil {
		t.Error("an answer of nobody")
	}
	if requests.Load() != 2 || conns.Load() != 1 || len(tr.idle) != 0 {
		t.Errorf("%d requests on %d connections, %d kept", requests.Load(), conns.Load(), len(tr.idle))
	}
}

// An answer that has no sense, or is cut, is none, and ends its connection.
func TestTransportGarbage(t *testing.T) {
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
			tr, _ := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
				if read(in) == nil {
					_, _ = io.WriteString(c, answer)
				}
			})
			if status, got, err := tr.post(t.Context(), []byte("x")); err == nil {
				t.Errorf("%d %q", status, got)
			}
			if len(tr.idle) != 0 {
				t.Errorf("%d connections are kept", len(tr.idle))
			}
		})
	}
}

// Each answer is that of its own request, whatever else a server sends.
func TestTransportKeepsAnswersApart(t *testing.T) {
	tr, conns := scripted(t, func(n int, c net.Conn, in *bufio.Reader) {
		for read(in) == nil {
			_, _ = io.WriteString(c, fine)
			if n == 0 {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
			}
		}
	})
	if _, got, err := tr.post(t.Context(), nil); got != "ok" || err != nil {
		t.Fatal(got, err)
	}
	for tr.idle[0].in.Buffered() == 0 && alive(tr.idle[0].Conn) {
		// until the second answer has come
	}
	if _, got, err := tr.post(t.Context(), nil); got != "ok" || err != nil || conns.Load() != 2 {
		t.Errorf("%q, %v on connection %d", got, err, conns.Load())
	}
}

// Chunked answers and those whose end is the connection's are whole.
func TestTransportReadsAllForms(t *testing.T) {
	for _, tc := range []struct {
		answer string
		kept   int
	}{
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", 1},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n2\r\nok\r\n0\r\nT: x\r\n\r\n", 1},
		{"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + fine, 1},
		{"HTTP/1.1 200 OK\r\n\r\nok", 0},
		{"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 0},
		{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 0},
	} {
		tr, _ := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
			if read(in) == nil {
				_, _ = io.WriteString(c, tc.answer)
				if tc.kept > 0 {
					_ = read(in)
				}
			}
		})
		if _, got, err := tr.post(t.Context(), nil); got != "ok" || err != nil || len(tr.idle) != tc.kept {
			t.Errorf("%q: %q, %v, %d kept", tc.answer, got, err, len(tr.idle))
		}
	}
}

// A context that ends, or a time that is over, while the body of an answer comes ends
// the call as it does before.
func TestContextEndsInTheMiddleOfAnAnswer(t *testing.T) {
	half := make(chan struct{}, 1)
	tr, _ := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
		if read(in) == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
			half <- struct{}{}
			_ = read(in)
		}
	})
	e := &Engine{timeout: time.Hour, base: &url.URL{Scheme: "http", Host: tr.addr}, client: &http.Client{Transport: tr}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := e.roundTrip(ctx, call{op: "push", method: http.MethodPost, path: "/v1/x"})
		done <- err
	}()
	<-half
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	e.timeout = 10 * time.Millisecond
	_, err := e.roundTrip(t.Context(), call{op: "push", method: http.MethodPost, path: "/v1/x"})
	if !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), engine.HintUnknown) {
		t.Errorf("overdue: %v", err)
	}
	if len(tr.idle) != 0 {
		t.Errorf("%d connections are kept", len(tr.idle))
	}
}

// What a server says that is none is not repeated at length.
func TestErrorsOfGarbageAreShort(t *testing.T) {
	tr, _ := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
		if read(in) == nil {
			_, _ = io.WriteString(c, strings.Repeat("\x00", maxHead/2)+"\r\n\r\n")
		}
	})
	e := &Engine{timeout: time.Hour, base: &url.URL{Scheme: "http", Host: tr.addr}, client: &http.Client{Transport: tr}}
	_, err := e.roundTrip(t.Context(), call{op: "push", method: http.MethodPost, path: "/v1/x"})
	if !errors.Is(err, engine.ErrUnavailable) || len(err.Error()) > 2*engine.MaxReason {
		t.Errorf("%d bytes, %.100v", len(err.Error()), err)
	}
}

// Thousands of calls at once, of which many end early, leave nothing behind and get no
// answer but their own.
func TestTransportInACrowd(t *testing.T) {
	tr, _, _ := served(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if len(b)%3 == 0 {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Duration(len(b)) * time.Microsecond):
			}
		}
		if len(b)%5 == 0 {
			w.Header().Set("Connection", "close")
		}
		_, _ = w.Write(b)
	})
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for i := range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				n := g*50 + i
				want := strconv.Itoa(n) + ":" + strings.Repeat("x", n)
				if i%4 == 0 {
					time.AfterFunc(time.Duration(n)*time.Microsecond, cancel)
				}
				if _, got, err := tr.post(ctx, []byte(want)); err == nil && got != want {
					t.Errorf("%.10q instead of %.10q", got, want)
				} else if err != nil && i%4 != 0 {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if n := len(tr.idle); n > 64 {
		t.Errorf("%d connections are kept", n)
	}
}

// What takes more than a connection to a host is left to net/http.
func TestOwnTransport(t *testing.T) {
	for host, own := range map[string]bool{
		"http://127.0.0.1": true, "http://[::1]:8277": true, "http://tarry.example": true,
		"https://127.0.0.1": false, "http://t\u00e4rry.example": false,
	} {
		u, err := url.Parse(host)
		if err != nil {
			t.Fatal(err)
		}
		if tr, is := ownTransport(u).(*transport); is != own && canTell {
			t.Errorf("%s: own is %v", host, is)
		} else if is {
			if _, port, err := net.SplitHostPort(tr.addr); port != cmp.Or(u.Port(), "80") || err != nil {
				t.Errorf("%s: %s", host, tr.addr)
			}
		}
	}
}
