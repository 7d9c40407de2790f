package intake

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/schemes"
)

// Options do not belong in the URL of a source.
type Options struct {
	// TLS configures TLS connections. Default: the system's authorities.
	TLS *tls.Config

	// Timeout bounds connecting, and each answer of the source. Default 10 s.
	Timeout time.Duration

	// Logger receives what no state shows. Default: slog.Default().
	Logger *slog.Logger
}

// DefaultTimeout is the default of Options.Timeout.
const DefaultTimeout = 10 * time.Second

// Opener makes the source of a URL without connecting. The options are complete.
type Opener func(u *url.URL, o *Options) (Source, error)

var openers schemes.Openers[Opener]

// Register makes a kind of source available to Open under a URL scheme. Packages of sources
// call it from init. It panics if the scheme is registered already.
func Register(scheme string, open Opener) { openers.Register("source", scheme, open) }

// Schemes returns the registered URL schemes, sorted.
func Schemes() []string { return openers.Names() }

// Open returns the source of a URL, without connecting. The package of the source must be
// imported. Errors wrap tarry.ErrInvalid, say what to do, and contain no password.
func Open(rawURL string, o Options) (Source, error) {
	u, open, hint := openers.Find("source", "amqp://host:5672/vhost?queue=delayed", rawURL)
	if hint != "" {
		return nil, invalid("%s", hint)
	}
	o.complete()
	return open(u, &o)
}

func (o *Options) complete() {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

func invalid(format string, args ...any) error {
	return &tarry.Error{Op: "open source", Err: tarry.ErrInvalid, Hint: fmt.Sprintf(format, args...)}
}
