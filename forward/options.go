package forward

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
)

// DefaultTimeout bounds a Send unless Options.Timeout is set.
const DefaultTimeout = 10 * time.Second

// Options are shared by all targets, or do not belong in a URL. The zero value and nil are
// valid.
type Options struct {
	// Headers are added to each message. They replace the message's headers of the same
	// name, regardless of case. The names of Metadata are reserved.
	Headers []Header

	// Secrets sign the requests of a webhook. Each is "whsec_" and 24 to 64 bytes in base64.
	// During a rotation there are several, and each signs. Default: no signature. Other
	// targets refuse secrets.
	Secrets []string

	// AllowPrivate lets a webhook call private, loopback, link-local and other non-public
	// addresses. Default: only public ones. It does not affect other targets: the
	// operator chooses their addresses.
	AllowPrivate bool

	// TLS configures TLS connections: authorities to trust, a certificate to present.
	// Default: the system's authorities.
	TLS *tls.Config

	// Timeout bounds a Send. Default DefaultTimeout.
	Timeout time.Duration

	// Logger receives errors that no Send can return, such as a connection lost while idle.
	// Default: slog.Default().
	Logger *slog.Logger
}

// Complete returns a checked copy of o with its defaults filled in. o may be nil; the copy
// shares nothing with it. Open calls it, and so does the New of each target.
func (o *Options) Complete() (*Options, error) {
	full := *cmp.Or(o, new(Options))
	if err := full.check(); err != nil {
		return nil, err
	}
	full.Headers = slices.Clone(full.Headers)
	full.Secrets = slices.Clone(full.Secrets)
	full.TLS = full.TLS.Clone()
	full.Timeout = cmp.Or(full.Timeout, DefaultTimeout)
	full.Logger = cmp.Or(full.Logger, slog.Default())
	return &full, nil
}

func (o *Options) check() error {
	for i, h := range o.Headers {
		switch {
		case h.Name == "":
			return invalid("a header has no name")
		case own(h.Name):
			return invalid("the header %s is tarry's own; choose another name", h.Name)
		case named(o.Headers[:i], h.Name):
			return invalid("the header %q is given twice", h.Name)
		}
	}
	if o.Timeout < 0 {
		return invalid("the timeout %s is negative", o.Timeout)
	}
	return nil
}

func named(hs []Header, name string) bool {
	return slices.ContainsFunc(hs, func(h Header) bool { return strings.EqualFold(h.Name, name) })
}

func invalid(format string, args ...any) error {
	return &tarry.Error{Op: "open target", Err: tarry.ErrInvalid, Hint: fmt.Sprintf(format, args...)}
}
