package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/internal/wire"
)

// conn bounds each stride that is written, so that a client that does not read holds
// nothing for long while one that reads slowly gets all of it, and gives our shape to
// the errors that net/http writes by itself before any handler is asked: malformed
// requests, headers beyond all bounds and expectations that it does not know.
type conn struct {
	net.Conn
	timeout time.Duration
	idle    atomic.Int64 // since when it rests, in Unix nanoseconds; 0: it does not
	reads   deadline

	mu     sync.Mutex
	writes time.Time // the deadline that is set
	last   time.Time // of all writes; zero: each stride has its own alone
}

// sendBuffer is how much of an answer the kernel takes ahead of the client. It wakes
// a writer when a third is free again, and what it takes at a time has to be less than
// slow clients read within the timeout.
const sendBuffer = 128 << 10

func newConn(c net.Conn, writeTimeout time.Duration) *conn {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // without it only the slowest are cut too early
	}
	return &conn{Conn: c, timeout: writeTimeout}
}

// cut closes the connection without a word: over TLS a farewell may have to wait for a
// client that does not read.
func (c *conn) cut() {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		_ = secure.NetConn().Close()
		return
	}
	_ = c.Close()
}

// Read ends the rest of a connection with the first byte of a request: net/http tells
// that one is active only once it has read the headers.
func (c *conn) Read(p []byte) (n int, err error) {
	for again := true; again; {
		if err := c.reads.begin(c.Conn); err != nil {
			return 0, err
		}
		n, err = c.Conn.Read(p)
		again = c.reads.end(c.Conn, n == 0 && errors.Is(err, os.ErrDeadlineExceeded))
	}
	if n > 0 && c.idle.Load() != 0 {
		c.idle.Store(0)
	}
	return n, err
}

// SetReadDeadline is for net/http, and for the bodies of requests.
func (c *conn) SetReadDeadline(t time.Time) error { return c.reads.want(c.Conn, t) }

// SetWriteDeadline bounds all that is written from now on, the write under way included.
// Each stride has its own deadline beside.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = t
	if t.IsZero() || c.writes.Before(t) {
		return nil
	}
	c.writes = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline is SetReadDeadline.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) Write(p []byte) (n int, err error) {
	if q := shaped(p); q != nil {
		if _, err := c.write(q); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return c.write(p)
}

func (c *conn) write(p []byte) (n int, err error) {
	for {
		if err := c.writeBy(len(p) - n); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(p[n:min(n+stride, len(p))])
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// shortWrite is for how many bytes the kernel nearly always has room at once.
const shortWrite = 4 << 10

// writeBy bounds how long the next stride of n bytes may take. For a short one the
// deadline may lie up to an eighth further, so that it need not be moved for each.
func (c *conn) writeBy(n int) error {
	by := time.Now().Add(c.timeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n <= shortWrite {
		if !c.writes.Before(by) {
			return nil
		}
		by = by.Add(c.timeout / 8)
	}
	if !c.last.IsZero() && c.last.Before(by) {
		by = c.last
	}
	c.writes = by
	return c.Conn.SetWriteDeadline(by)
}

// plainError is how such an answer of net/http goes on behind its status.
var plainError = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// shaped returns an error of net/http's own in our shape, nil for anything else.
func shaped(p []byte) []byte {
	if q := expectation(p); q != nil {
		return q
	}
	const start = "HTTP/1.1 "
	if len(p) > 1024 || !bytes.HasPrefix(p, []byte(start)) || len(p) == len(start) || p[len(start)] < '4' {
		return nil
	}
	head, message, ok := bytes.Cut(p, plainError)
	if !ok || len(head) < len(start)+3 {
		return nil
	}
	status, err := strconv.Atoi(string(head[len(start) : len(start)+3]))
	if err != nil || status < 400 {
		return nil
	}
	f := &wire.Error{Code: "invalid", Message: string(bytes.ToValidUTF8(message, nil))}
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		f.Code = "too_large"
	case http.StatusNotImplemented:
		f.Code = "unsupported"
	}
	body := wire.AppendError(nil, f)
	q := append([]byte(nil), head...)
	q = append(q, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	q = strconv.AppendInt(q, int64(len(body)), 10)
	q = append(q, "\r\nConnection: close\r\n\r\n"...)
	return append(q, body...)
}

// expectation returns the answer to a request with an Expect that net/http does not know, which
// it writes without a body; nil for any other, also for one to HEAD, which may have none. No
// handler of ours answers with this status.
func expectation(p []byte) []byte {
	const (
		start, version = "HTTP/1.", len("HTTP/1.1")
		status         = " 417 Expectation Failed\r\n"
		empty, end     = "\r\nContent-Length: 0\r\n", "\r\n\r\n"
	)
	if len(p) > 1024 || len(p) < version || !bytes.HasPrefix(p, []byte(start)) || !bytes.HasPrefix(p[version:], []byte(status)) || !bytes.HasSuffix(p, []byte(end)) {
		return nil
	}
	head, rest, ok := bytes.Cut(p, []byte(empty))
	if !ok {
		return nil
	}
	body := wire.AppendError(nil, &wire.Error{Code: "invalid", Message: "the Expect of the request cannot be met",
		Hint: "leave the header away; the only one that is known is Expect: 100-continue"})
	q := append([]byte(nil), head...)
	q = append(q, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	q = strconv.AppendInt(q, int64(len(body)), 10)
	q = append(q, "\r\n"...)
	return append(append(q, rest...), body...)
}
