package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
)

// Target posts messages to one URL. It is safe for concurrent use. It keeps as many
// connections as are in use at a time, or one over HTTP/2. For many receivers, make one Target
// each.
type Target struct {
	name          string // scheme and host, for errors
	base          *http.Request
	opts          *forward.Options
	contentType   string // replaces the messages' own
	signer        signer
	maxRetryAfter time.Duration
	dialer        *net.Dialer
	transport     *http.Transport
	link          *link.Link[*http.Transport]
}

const (
	dialTimeout = 5 * time.Second // and for TLS
	keptIdle    = 1024            // connections
	idleTimeout = 90 * time.Second
	maxHeader   = 64 << 10 // of an answer's headers

	// An HTTP/2 connection is pinged when it is silent for this long, and closed if it stays
	// silent.
	askAfter = 5 * time.Second
	askedFor = 3 * time.Second
)

var errLate = errors.New("the timeout has passed")

// New returns a target that posts to cfg.URL, without connecting. An invalid URL, option or
// secret, or a private host that is not allowed, is a *tarry.Error that wraps
// tarry.ErrInvalid.
func New(cfg *Config) (*Target, error) {
	u, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	t := &Target{name: u.Scheme + "://" + u.Host, maxRetryAfter: cmp.Or(cfg.MaxRetryAfter, DefaultMaxRetryAfter)}
	if t.opts, err = cfg.Options.Complete(); err != nil {
		return nil, err
	}
	if t.signer, err = newSigner(t.opts.Secrets); err != nil {
		return nil, err
	}
	var kept []forward.Header
	for _, h := range t.opts.Headers {
		switch name := http.CanonicalHeaderKey(h.Name); {
		case headerValue(h.Value) != h.Value:
			return nil, link.Invalid("the value of the header %s is not printable ASCII, or begins or ends with a space", printable(h.Name))
		case name == "Authorization" && u.User != nil:
			return nil, link.Invalid("both the URL and the headers have credentials; leave one of them out")
		case name == "Content-Type":
			t.contentType = h.Value
		case headerName(h.Name) == "":
			return nil, link.Invalid("the header %s is not valid in HTTP, or set by the sender; leave it out", printable(h.Name))
		default:
			kept = append(kept, h)
		}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		kept = append(kept, forward.Header{Name: "Authorization",
			Value: "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))})
		u.User = nil
	}
	t.opts.Headers = kept
	t.base = &http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	t.connectBy(cfg)
	return t, nil
}

// connectBy configures how connections are made.
func (t *Target) connectBy(cfg *Config) {
	t.dialer = &net.Dialer{Timeout: dialTimeout}
	if !t.opts.AllowPrivate && cfg.Proxy == nil {
		t.dialer.ControlContext = publicOnly
	}
	dial := cfg.Dial
	if dial == nil {
		dial = t.dialer.DialContext
	}
	t.transport = &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        t.opts.TLS,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConnsPerHost:    keptIdle,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: askAfter, PingTimeout: askedFor},
	}
	if cfg.Proxy != nil {
		t.transport.Proxy = http.ProxyURL(cfg.Proxy)
	}
	connect := func(context.Context) (*http.Transport, error) { return t.transport, nil } // each Send connects by itself
	t.link = link.New(t.opts.Timeout, connect, (*http.Transport).CloseIdleConnections)
}

// Send posts the message and returns nil after a 2xx answer. The package comment describes
// other answers.
func (t *Target) Send(ctx context.Context, m *tarry.Message[[]byte]) error {
	return t.link.Use(ctx, func(ctx context.Context, _ *http.Transport) error { return t.post(ctx, m) })
}

func (t *Target) post(ctx context.Context, m *tarry.Message[[]byte]) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	began := time.Now()
	late := time.AfterFunc(t.opts.Timeout, func() { stop(errLate) })
	defer late.Stop()
	req, err := t.request(ctx, m, began)
	if err != nil {
		return err
	}
	res, err := t.transport.RoundTrip(req)
	if err != nil {
		return t.failed(ctx, err)
	}
	defer res.Body.Close()
	now := time.Now()
	late.Reset(min(bodyPatience, t.opts.Timeout-now.Sub(began)))
	return t.verdict(m, res, now)
}

// request makes the request for a message.
func (t *Target) request(ctx context.Context, m *tarry.Message[[]byte], now time.Time) (*http.Request, error) {
	h := make(http.Header, 16)
	for _, x := range forward.Metadata(m, t.opts) {
		if name := headerName(x.Name); name != "" {
			h[name] = append(h[name], headerValue(x.Value))
		}
	}
	switch {
	case t.contentType != "":
		h["Content-Type"] = []string{t.contentType}
	case m.ContentType != "":
		h["Content-Type"] = []string{headerValue(m.ContentType)}
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = []string{"tarry"}
	}
	if h["Idempotency-Key"] == nil {
		// The transport may repeat the request if the target closed an idle connection. A
		// key without value allows that, and is not sent.
		h["Idempotency-Key"] = nil
	}
	if err := t.signer.sign(h, eventID(m), now, m.Body); err != nil {
		return nil, err
	}
	req := t.base.WithContext(ctx)
	req.Header = h
	req.Body = http.NoBody
	if len(m.Body) > 0 {
		req.ContentLength = int64(len(m.Body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.Body)), nil }
		req.Body, _ = req.GetBody()
	}
	return req, nil
}

// failed returns why there is no answer.
func (t *Target) failed(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); cause {
	case nil:
	case errLate:
		return fmt.Errorf("%s did not answer within %s", t.name, t.opts.Timeout)
	default:
		err = cause
	}
	return fmt.Errorf("%s: %w", t.name, err)
}

// Close waits for Sends in progress and closes the connections. Idempotent.
func (t *Target) Close() error { return t.link.Close() }
