package httpengine

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/wire"
)

// call is one request.
type call struct {
	op     string
	ref    engine.Ref // the queue and message, for errors
	method string
	path   string // percent-encoded
	query  string
	body   []byte        // must not be changed afterwards: the transport may still read it
	wait   time.Duration // added to the timeout
	free   bool          // bounded by the context alone, not by the timeout
	brings int           // most messages in the answer
}

// buffer holds the body of an answer.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{make([]byte, 0, 4<<10)} }}

const maxPooled = 1 << 20

func (b *buffer) free() {
	if cap(b.b) <= maxPooled {
		buffers.Put(b)
	}
}

var (
	jsonType   = []string{"application/json"}
	exact      = []string{"true"}
	errTimeout = errors.New("the server did not answer in time")
)

// ErrNoAnswer is engine.ErrUnavailable from a server that cannot be reached at all.
var ErrNoAnswer = fmt.Errorf("%w", engine.ErrUnavailable)

// do makes a request and returns the body of its answer, or the error in it.
func (e *Engine) do(ctx context.Context, c call) (*buffer, error) {
	if err := e.calls.Enter(ctx, c.op); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	return e.roundTrip(ctx, c)
}

// roundTrip is do within a call that has begun.
func (e *Engine) roundTrip(ctx context.Context, c call) (*buffer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !c.free {
		defer time.AfterFunc(e.timeout+c.wait, func() { cancel(errTimeout) }).Stop()
	}
	if c.wait > 0 {
		e.measured.waiting.Add(1)
		defer e.measured.waiting.Add(-1)
	}
	since := time.Now()
	resp, err := e.client.Do(e.request(ctx, c))
	if err != nil {
		return nil, e.broken(ctx, c, err)
	}
	defer resp.Body.Close()
	b := buffers.Get().(*buffer)
	if b.b, err = readAll(b.b[:0], resp, e.longest(&c)); err != nil {
		b.free()
		if err == errTooLong {
			return nil, problem("it is longer than the %d bytes that it may have by the limits that the server told", e.longest(&c))
		}
		return nil, e.broken(ctx, c, err)
	}
	e.measured.answered(&c, since, resp.StatusCode)
	if resp.StatusCode/100 == 2 {
		return b, nil
	}
	defer b.free()
	err = e.refused(c, resp.StatusCode, b.b)
	if n, bad := strconv.ParseInt(resp.Header.Get(wire.CountHeader), 10, 64); bad == nil {
		err = &partial{err, n}
	}
	return nil, err
}

func (e *Engine) request(ctx context.Context, c call) *http.Request {
	u := *e.base
	raw := u.EscapedPath() + c.path
	u.Path, u.RawPath, u.RawQuery = raw, raw, c.query
	if p, err := url.PathUnescape(raw); err == nil {
		u.Path = p
	}
	req := (&http.Request{
		Method: c.method, URL: &u, Host: u.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{wire.ExactHeader: exact, "User-Agent": userAgent()},
	}).WithContext(ctx)
	if e.token != "" {
		req.Header["Authorization"] = []string{"Bearer " + e.token}
	}
	if c.method != http.MethodGet && c.method != http.MethodDelete {
		req.Header["Content-Type"] = jsonType
	}
	if len(c.body) > 0 {
		req.ContentLength = int64(len(c.body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
		req.Body, _ = req.GetBody()
	}
	return req
}

// userAgent names this client: tarry, and the version that the program was built with.
var userAgent = sync.OnceValue(func() []string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == "github.com/tarryhq/tarry" && strings.HasPrefix(m.Version, "v") {
				version = m.Version
			}
		}
	}
	return []string{"tarry/" + version}
})

const (
	// answerMost bounds an answer besides the room for its messages: 10,000 results, or the
	// excess of a message from before the server's MaxBody was lowered.
	answerMost = 64 << 20
	// messageMost bounds a message without its body, with each byte of its headers, key and
	// last error escaped.
	messageMost = 64 << 10
	// trusted is how much room is made for an answer before any of it has come: its announced
	// length may be wrong.
	trusted = 16 << 20
)

// longest returns the bound on the length of an answer.
func (e *Engine) longest(c *call) int64 {
	return answerMost + int64(c.brings)*(messageMost+int64(e.limits.MaxBody)/3*4)
}

var errTooLong = errors.New("the answer is too long")

// readAll reads an answer of at most so many bytes. It allocates once if the length is known
// and trusted.
func readAll(b []byte, resp *http.Response, most int64) ([]byte, error) {
	if resp.ContentLength > most {
		return b, errTooLong
	}
	buf := bytes.NewBuffer(b)
	if n := resp.ContentLength; n > 0 {
		buf.Grow(int(min(n, trusted)) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, most+1))
	if n > most {
		err = errTooLong
	}
	return buf.Bytes(), err
}

// fail returns an error of this call.
func (c *call) fail(err error, hint string) error {
	if hint == "" && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		hint = engine.HintUnknown
	}
	return &engine.Error{Op: c.op, Queue: c.ref.Queue, ID: c.ref.ID, Key: c.ref.Key, Err: err, Hint: hint}
}

// broken returns the error of a call that got no answer.
func (e *Engine) broken(ctx context.Context, c call, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
	case cause == errTimeout:
		e.measured.lost()
		return c.fail(engine.ErrUnavailable, e.base.String()+" did not answer in time"+c.unknown())
	case ctx.Err() != nil:
		return c.fail(ctx.Err(), e.base.String()+" had not answered by then"+c.unknown())
	}
	e.measured.lost()
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // ue repeats the URL
	}
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		at := e.base.String()
		return c.fail(fmt.Errorf("%w: %w", engine.ErrUnavailable, untrusted), "the certificate of "+at+" is not trusted; name its authority by ca_file, as in "+at+"?ca_file=PATH")
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return c.fail(engine.ErrUnavailable, "the server answers in plain HTTP; use "+e.as("http"))
	}
	hint := "the server at " + e.base.String() + " does not answer: " + engine.KeptReason(err.Error())
	if calls.FateOf(err) == calls.Unknown {
		hint += c.unknown()
	}
	return c.fail(ErrNoAnswer, hint)
}

// wantsTLS is how net/http answers a plain HTTP request on a port for TLS.
const wantsTLS = "Client sent an HTTP request to an HTTPS server."

// as returns the server's URL with another scheme.
func (e *Engine) as(scheme string) string {
	u := *e.base
	u.Scheme = scheme
	return u.String()
}

// unknown returns the addition to the hint of a call that was sent and got no answer.
func (c *call) unknown() string {
	if c.method == http.MethodGet { // it changes nothing
		return ""
	}
	return "; " + engine.HintUnknown
}

// partial is the error of a call that did a part of its work.
type partial struct {
	error
	count int64
}

func (p *partial) Unwrap() error { return p.error }

// refused returns the error that an answer reports.
func (e *Engine) refused(c call, status int, body []byte) error {
	if told, err := wire.Failed.Answer(body); err == nil {
		if told, ok := told.(*wire.Error); ok && told.Code != "" {
			return told.Err(c.op, c.ref)
		}
	}
	text := strings.TrimSpace(string(body))
	if text == wantsTLS {
		return c.fail(engine.ErrUnavailable, "the server answers in TLS; use "+e.as("https"))
	}
	sentinel := engine.ErrUnavailable // a gateway's 404 passes too, and settles nothing
	if c.op == "open" && status/100 != 5 {
		sentinel = engine.ErrInvalid
	}
	hint := e.base.String() + " answers " + http.StatusText(status) + ", but not as a tarry server does"
	if text != "" {
		hint += ": " + engine.Clip(text)
	}
	return c.fail(sentinel, hint)
}
