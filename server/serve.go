package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"
)

// stoppingKey finds in a request's context the one that ends when the server shuts
// down. The request's own does not end then: what was begun is finished.
type stoppingKey struct{}

func stopping(ctx context.Context) context.Context {
	c, _ := ctx.Value(stoppingKey{}).(context.Context)
	return c
}

// Serve answers requests on a listener until ctx ends. Then it stops accepting, ends
// long polls at once with what they have, and waits for the other requests under
// way, for as long as Config.ShutdownTimeout says. It returns nil after such an end,
// and closes the listener in any case.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	base := context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, ctx)
	hs := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: s.cfg.ReadHeaderTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    1 << 20,
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(&listener{ln, s.cfg.WriteTimeout}) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ShutdownTimeout)
	defer cancel()
	err := hs.Shutdown(end)
	if err != nil {
		err = errors.Join(errors.New("requests were still under way when the server's time to shut down was over"), hs.Close())
	}
	<-served
	return err
}

// listener hands out connections that keep to our rules.
type listener struct {
	net.Listener
	writeTimeout time.Duration
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{c, l.writeTimeout}, nil
}

// conn bounds each write, so that a client that does not read holds nothing for
// long, and gives our shape to the errors that net/http writes by itself before any
// handler is asked: malformed requests and headers beyond all bounds.
type conn struct {
	net.Conn
	timeout time.Duration
}

// plainError is how such an answer of net/http goes on behind its status.
var plainError = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	if q := shaped(p); q != nil {
		if _, err := c.Conn.Write(q); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return c.Conn.Write(p)
}

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
	f := &failure{code: "invalid", message: string(bytes.ToValidUTF8(message, nil))}
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		f.code = "too_large"
	case http.StatusNotImplemented:
		f.code = "unsupported"
	}
	body := append(appendError([]byte{'{'}, f), '}')
	q := append([]byte(nil), head...)
	q = append(q, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	q = strconv.AppendInt(q, int64(len(body)), 10)
	q = append(q, "\r\nConnection: close\r\n\r\n"...)
	return append(q, body...)
}
