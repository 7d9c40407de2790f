package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry/internal/wire"
)

// read reads the JSON of a request. The caller must not free the input while its bodies are in
// use.
func (s *Server) read(x *exchange, r *http.Request) (*input, error) {
	if err := checkType(r); err != nil {
		return nil, err
	}
	if r.ContentLength > int64(s.cfg.MaxRequest) {
		return nil, s.tooLarge()
	}
	in := inputFor(r.ContentLength)
	data, err := s.body(x, r, in.Buffer())
	if err == nil && bytes.Contains(data, []byte("body_base64")) {
		err = x.hold(len(data)) // the decoded bodies need room too
	}
	if err != nil {
		return nil, err
	}
	in.Reset(data)
	return in, nil
}

// decode reads a request that has no bodies of messages.
func decode[T any](x *exchange, r *http.Request, o *wire.Object[T]) (v T, err error) {
	in, err := x.s.read(x, r)
	if err != nil {
		return v, err
	}
	o.Read(&in.Reader, &v)
	if err := in.Err(); err != nil {
		return v, err
	}
	in.free()
	return v, nil
}

// body reads the body of a request into buf, which grows as bytes arrive. A large
// Content-Length alone takes no memory. If nothing comes for bodyGrace, the connection may be
// closed to make room for others.
func (s *Server) body(x *exchange, r *http.Request, buf []byte) ([]byte, error) {
	if x.hold(cap(buf)) != nil {
		buf = nil
	}
	x.reading = true
	x.conn.setWaiting(x.began.Add(bodyGrace), false)
	defer x.conn.setBusy()
	for strides := 1; ; {
		if len(buf) == cap(buf) {
			size := s.nextSize(len(buf), r.ContentLength)
			if err := x.take(int64(max(size-unheld, 0) - max(cap(buf)-unheld, 0))); err != nil {
				return nil, err
			}
			buf = append(make([]byte, 0, size), buf...)
		}
		n, err := r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > s.cfg.MaxRequest:
			return nil, s.tooLarge()
		case err == io.EOF:
			if x.conn == nil { // another handler may have read it before, and net/http watch its client since
				x.readBy(time.Time{})
			}
			return buf, nil
		case err != nil:
			return nil, brokenOff(err)
		case len(buf) >= strides*stride:
			strides = len(buf)/stride + 1
			now := time.Now()
			x.readBy(now.Add(s.cfg.ReadTimeout))
			x.conn.setWaiting(now.Add(bodyGrace), false)
		}
	}
}

// nextSize returns the new size of a full buffer of n bytes. It is twice as large, but no
// larger than the declared or the largest body, plus one byte for the read that meets the end.
func (s *Server) nextSize(n int, said int64) int {
	const least = 4 << 10
	size := min(max(2*n, least), s.cfg.MaxRequest+1)
	if int64(n) <= said {
		size = min(size, max(int(said)+1, least))
	}
	return size
}

// checkType requires JSON, since a form on a foreign web page can send other types unasked.
func checkType(r *http.Request) error {
	if !isType(r.Header.Get("Content-Type")) {
		return refusal(http.StatusUnsupportedMediaType, "invalid", "the Content-Type must be application/json",
			"add the header Content-Type: application/json")
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return refusal(http.StatusUnsupportedMediaType, "invalid", "the Content-Encoding must be identity", "send the JSON as it is")
	}
	return nil
}

func isType(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(t), mediaType)
}

func (s *Server) tooLarge() error {
	return refusal(http.StatusRequestEntityTooLarge, "too_large",
		"the request is larger than "+strconv.Itoa(s.cfg.MaxRequest)+" bytes", "send fewer messages in one request, or have the server take larger bodies (tarry serve --max-body)")
}

func brokenOff(err error) error {
	var ne interface{ Timeout() bool }
	if errors.As(err, &ne) && ne.Timeout() {
		return refusal(http.StatusRequestTimeout, "invalid", "the request's body did not come in time", "")
	}
	return wire.Wrong("the request's body broke off: %v", err).WithHint("nothing was done; send as many bytes as the Content-Length says")
}

// drain reads the rest of a refused request, so that the client can read the answer. It reads
// at most maxDrain, and nothing if the client waits for 100 Continue. A request without a token
// must not hold a connection with a body that does not come: if brief, drain waits only
// briefTimeout for one stride.
func (s *Server) drain(x *exchange, r *http.Request, brief bool) {
	if r.Body == nil || r.Body == http.NoBody || x.continues(r) {
		return
	}
	x.reading = true
	most, patience, grace := maxDrain, s.cfg.ReadTimeout, bodyGrace
	if brief {
		most, patience, grace = stride, min(patience, briefTimeout), 0
		x.dropHeaders()
	}
	for read := 0; read < most; read += stride {
		now := time.Now()
		x.readBy(now.Add(patience))
		x.conn.setWaiting(now.Add(grace), false)
		if _, err := io.CopyN(io.Discard, r.Body, stride); err == io.EOF {
			return
		} else if err != nil {
			break
		}
	}
	x.Header().Set("Connection", "close")
}

// briefTimeout is how long a request without a token is waited for.
const briefTimeout = time.Second
