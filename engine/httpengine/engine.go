package httpengine

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/storeurl"
	"github.com/tarryhq/tarry/internal/wire"
)

func init() {
	open := func(ctx context.Context, u *url.URL) (engine.Engine, error) { return Open(ctx, u, nil) }
	engine.Register("http", open)
	engine.Register("https", open)
}

// Options configures an Engine. The zero value and nil suit most uses.
type Options struct {
	// Token is the bearer token of each request. Default: the password in the URL, else the
	// content of its token_file, else its user name, else none.
	Token string

	// TLS is for https. Default: TLS 1.2 or later, trusting the system's authorities and the
	// URL's ca_file, with the certificate of the URL's cert_file and key_file.
	TLS *tls.Config

	// Logger gets a warning before a token leaves this machine without TLS. Default:
	// slog.Default().
	Logger *slog.Logger

	// Transport makes the requests; TLS above does not apply to it, and Close leaves it open.
	// Default: a transport of the engine's own, with room for 256 idle connections.
	Transport http.RoundTripper

	// Timeout bounds a call, not counting the time that it asks the server to wait. Only
	// their context bounds purges. Default: the option timeout of the URL, else 30 s.
	Timeout time.Duration
}

// Engine is a tarry server. It is safe for concurrent use.
type Engine struct {
	base    *url.URL
	token   string
	client  *http.Client
	own     *http.Transport // nil: the transport is the caller's
	timeout time.Duration
	caps    engine.Capabilities
	limits  wire.Limits
	version string // of the server
	watch   watch
	sets    sets

	measured measured

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	calls  calls.Gate
}

var _ interface {
	engine.Engine
	engine.Claimer
	engine.Lister
	engine.Counter
	engine.Forecaster
	engine.Pauser
	engine.Purger
	engine.Redriver
	engine.Configurer
	engine.AtomicPusher
	engine.LeaseWaiter
} = (*Engine)(nil)

// Open connects to the server at u and asks for its abilities. The URL has a host, a port
// unless it is the scheme's, and a path if the server is mounted below one. Its options are
// token_file and timeout, and with https ca_file, cert_file and key_file: see Options. Open
// fails with ErrUnavailable without an answer, and with ErrInvalid if the answer is not a
// tarry server's.
func Open(ctx context.Context, u *url.URL, opts *Options) (*Engine, error) {
	e, err := prepare(u, opts)
	if err != nil {
		return nil, err
	}
	if err := e.learn(ctx); err != nil {
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

// prepare returns an engine that knows nothing about its server yet.
func prepare(u *url.URL, opts *Options) (*Engine, error) {
	opts = cmp.Or(opts, new(Options))
	token, timeout := u.User.Username(), 30*time.Second
	secure, err := readURL(u, &token, &timeout)
	if err != nil {
		return nil, err
	}
	e := &Engine{timeout: timeout, token: cmp.Or(opts.Token, token), base: &url.URL{
		Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/"),
	}}
	if opts.Timeout > 0 {
		e.timeout = opts.Timeout
	}
	rt := opts.Transport
	if rt == nil {
		e.own = ownTransport(cmp.Or(opts.TLS, secure))
		e.own.DialContext, e.measured.dials = dialing(net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive})
		rt = e.own
	}
	if e.token != "" && u.Scheme == "http" {
		e.warnOfReaders(cmp.Or(opts.Logger, slog.Default()))
	}
	e.client = &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Bounds of the engine's own transport.
const (
	maxIdle = 256         // connections kept open between calls
	maxRest = time.Minute // shorter than the server's, so that the server is not the first to hang up
	maxHead = 64 << 10    // bytes of an answer's header, with any interim answers before it

	// bufferSize is how much of a request is written, and of an answer read, at a time.
	bufferSize = 32 << 10

	dialTimeout = 5 * time.Second
	keepAlive   = 15 * time.Second
)

func ownTransport(secure *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        secure,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        maxRest,
		MaxResponseHeaderBytes: maxHead,
		DisableCompression:     true,
		WriteBufferSize:        bufferSize,
		ReadBufferSize:         bufferSize,
	}
}

// readURL checks a URL and reads its options.
func readURL(u *url.URL, token *string, timeout *time.Duration) (secure *tls.Config, err error) {
	r := storeurl.New(u)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		r.Fail("the URL of a server begins with http:// or https://")
	case u.Host == "":
		r.Fail("the URL of a server names a host, as in http://127.0.0.1:8277")
	case u.Fragment != "":
		r.Fail("the URL of a server has no fragment")
	}
	r.Token("token_file", token)
	if r.Duration("timeout", timeout) && *timeout == 0 {
		r.Fail("timeout is longer than nothing")
	}
	if u.Scheme == "https" {
		secure = r.TLS()
	}
	return secure, r.Done()
}

// learn asks the server for its abilities and limits.
func (e *Engine) learn(ctx context.Context) error {
	b, err := e.do(ctx, call{op: "open", method: http.MethodGet, path: "/v1/info"})
	if err != nil {
		return err
	}
	defer b.free()
	server, err := wire.ReadServer(b.b)
	if err != nil {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: e.base.Redacted() + " answers, but not as a tarry server does"}
	}
	e.limits, e.caps, e.version = server.Limits, server.Told(), server.Version
	e.caps.Name = "http+" + e.caps.Name
	e.caps.Coalesce, e.caps.Lanes, e.caps.Pace = coalesce, lanes, pace
	e.caps.LeaseWait, e.caps.Prompt = true, true
	e.caps.Peek, e.caps.Find = false, false // the API has neither
	e.caps.Recheck = time.Second            // the server does not send hints of other clients' pushes
	return nil
}

// coalesce is how many single calls made during a request go together into the next one: a
// request costs far more than a message in it.
const coalesce = 512

// lanes is how many such requests are under way at a time: the server syncs one while another
// travels and a third is put together.
const lanes = 3

// pace lets acks gather for a moment.
const pace = 5 * time.Millisecond

// Capabilities returns those of the engine behind the server without Peek and Find, and
// LeaseWait.
func (e *Engine) Capabilities() engine.Capabilities { return e.caps }

// Close waits for calls under way, ends long polls, and closes idle connections. It releases
// the messages that long polls had leased by then, which takes up to 5 s.
func (e *Engine) Close() error {
	idle := e.calls.Close()
	e.cancel()
	<-idle
	if e.own != nil {
		e.own.CloseIdleConnections()
	}
	return nil
}

// Version returns the server's version as of opening.
func (e *Engine) Version() string { return e.version }

// String names the server by its URL, without the token.
func (e *Engine) String() string { return fmt.Sprintf("tarry server %s", e.base.Redacted()) }
