package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/internal/sparse"
	"github.com/tarryhq/tarry/internal/wire"
)

// secureConn is a conn over TLS, in which all is read and written as in any other. By
// ConnectionState net/http knows it.
type secureConn struct {
	*conn
	tls     *tls.Conn
	timeout time.Duration // for the handshake
	log     *slog.Logger
	told    *sparse.Lines // of handshakes that failed
}

// ConnectionState is what was agreed on: net/http asks for it, once, before it reads the
// first request. So here is the handshake; after one that has failed nothing can be read.
func (c *secureConn) ConnectionState() tls.ConnectionState {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	if err := c.tls.HandshakeContext(ctx); err != nil {
		if !errors.Is(err, io.EOF) && !errors.Is(err, context.DeadlineExceeded) {
			if left, ok := c.told.Next(); ok { // who cannot speak TLS can still connect, as often as he likes
				c.log.Warn("a connection failed before its first request", "from", c.RemoteAddr().String(), "error", err, "not_told", left)
			}
		}
		var plain tls.RecordHeaderError
		if errors.As(err, &plain) && plain.Conn != nil {
			_, _ = plain.Conn.Write(notSecure)
		}
	}
	return c.tls.ConnectionState()
}

// notSecure answers who speaks HTTP without TLS.
var notSecure = lastAnswer(refusal(http.StatusBadRequest, "invalid", "this server wants TLS", "call it by https://"))

// lastAnswer is an answer after which the connection is closed, with its head.
func lastAnswer(f *wire.Error, head ...string) []byte {
	body := wire.AppendError(nil, f)
	b := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n", f.Status, http.StatusText(f.Status))
	for _, h := range head {
		b = append(append(b, h...), "\r\n"...)
	}
	b = append(b, "Connection: close\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"...)
	return append(b, body...)
}
