package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/storeurl"
	"github.com/tarryhq/tarry/internal/wire"
)

// rawServer is a server for raw pushes.
type rawServer struct {
	url    *url.URL
	token  string
	secure *tls.Config // nil: no TLS
}

// readRaw parses the URL of a store, which must be a server's, as the HTTP engine does.
func readRaw(store string) (*rawServer, error) {
	u, err := url.Parse(store)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, ErrNoRaw
	}
	s := &rawServer{url: u, token: u.User.Username()}
	r, timeout := storeurl.New(u), time.Duration(0)
	r.Password("token_file", &s.token)
	r.Duration("timeout", &timeout) // only the engine uses it
	if u.Scheme == "https" {
		s.secure = r.TLS()
	}
	return s, r.Done()
}

// pushRaw is like push but without tarry's client, which combines the calls of many callers.
// Each caller has its own keep-alive connection and sends one message a request, as a program
// in any language would. Each answer is checked.
func (t *trial) pushRaw(ctx context.Context) error {
	s, err := readRaw(t.Store)
	if err != nil {
		return err
	}
	conns := make(chan *rawConn, t.Clients)
	for range t.Clients {
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
		conns <- c
	}
	path := strings.TrimSuffix(s.url.EscapedPath(), "/") + wire.QueuePath(t.queue) + "/messages"
	return t.measure(ctx, "pushed", 1, func(_ context.Context, i, _ int) error {
		c := <-conns
		defer func() { conns <- c }()
		return c.push(path, key(i), t.body(i), far(i))
	})
}

// rawConn is a connection that writes requests and reads answers with as little work as
// possible.
type rawConn struct {
	net.Conn
	in     *bufio.Reader
	header string // of each request, without its request line and length
	out    []byte
	answer []byte
}

func (s *rawServer) dial(ctx context.Context) (*rawConn, error) {
	dial, port := new(net.Dialer).DialContext, "80"
	if s.secure != nil {
		dial, port = (&tls.Dialer{Config: s.secure}).DialContext, "443"
	}
	if p := s.url.Port(); p != "" {
		port = p
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(s.url.Hostname(), port))
	if err != nil {
		return nil, &engine.Error{Op: "push", Err: engine.ErrUnavailable, Hint: err.Error()}
	}
	header := " HTTP/1.1\r\nHost: " + s.url.Host + "\r\nContent-Type: application/json\r\n"
	if s.token != "" {
		header += "Authorization: Bearer " + s.token + "\r\n"
	}
	return &rawConn{Conn: conn, in: bufio.NewReader(conn), header: header}, nil
}

// push pushes one message and checks the answer.
func (c *rawConn) push(path, key string, body []byte, delay time.Duration) error {
	message := append([]byte(nil), `{"key":`...)
	message = wire.AppendString(message, key)
	message = wire.AppendDuration(append(message, `,"delay":`...), delay)
	message = append(message, `,"body_base64":"`...)
	message = base64.StdEncoding.AppendEncode(message, body)
	message = append(message, `"}`...)
	c.out = append(c.out[:0], "POST "...)
	c.out = append(append(c.out, path...), c.header...)
	c.out = strconv.AppendInt(append(c.out, "Content-Length: "...), int64(len(message)), 10)
	c.out = append(append(c.out, "\r\n\r\n"...), message...)
	if _, err := c.Write(c.out); err != nil {
		return err
	}
	status, err := c.read()
	if err != nil {
		return fmt.Errorf("a raw push got no answer: %w", err)
	}
	pushed, err := wire.PushResult.Answer(c.answer)
	if err != nil {
		return fmt.Errorf("a raw push was answered %q: %w", c.answer, err)
	}
	if e, ok := pushed.Err.(*wire.Error); ok {
		return e.Err("push", engine.Ref{Key: key})
	}
	if status != 201 || pushed.Outcome != engine.Created || pushed.ID == 0 || pushed.Key != key {
		return fmt.Errorf("a raw push of %s was answered %d %s", key, status, c.answer)
	}
	return nil
}

// read reads an answer, which must state its length.
func (c *rawConn) read() (status int, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	proto, rest, _ := bytes.Cut(line, []byte(" "))
	code, _, _ := bytes.Cut(rest, []byte(" "))
	if status, err = strconv.Atoi(string(bytes.TrimSpace(code))); err != nil || !bytes.HasPrefix(proto, []byte("HTTP/1.")) {
		return 0, fmt.Errorf("%q is no answer of HTTP/1", line)
	}
	length := -1
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return 0, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, err
			}
		}
	}
	if length < 0 || length > maxAnswer {
		return 0, errors.New("the answer has no length, or is too long")
	}
	if cap(c.answer) < length {
		c.answer = make([]byte, length)
	}
	c.answer = c.answer[:length]
	_, err = io.ReadFull(c.in, c.answer)
	return status, err
}

// maxAnswer is the longest answer to a push in bytes.
const maxAnswer = 1 << 20
