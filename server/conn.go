package server

import (
	"bytes"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/internal/wire"
)

// conn bounds each stride that is written, so that a client that does not read holds
// nothing for long while one that reads slowly gets all of it, and gives our shape to
// the errors that net/http writes by itself before any handler is asked: malformed
// requests and headers beyond all bounds.
type conn struct {
	net.Conn
	timeout time.Duration
	idle    atomic.Int64 // since when it rests, in Unix nanoseconds; 0: it does not
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

// Read ends the rest of a connection with the first byte of a request: net/http tells
// that one is active only once it has read the headers.
func (c *conn) Read(p []byte) (n int, err error) {
	n, err = c.Conn.Read(p)
	if n > 0 && c.idle.Load() != 0 {
		c.idle.Store(0)
	}
	return n, err
}

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
		if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(p[n:min(n+stride, len(p))])
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// plainError is how such an answer of net/http goes on behind its status.
var plainError = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// shaped returns an error of net/http's own in our shape, nil for anything else.
func shaped(p []byte) []byte {
	const start = "HTTP/1.1 "
	if len(p) > 1024 || !bytes.HasPrefix(p, []byte(start)) {
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
