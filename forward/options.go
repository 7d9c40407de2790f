package forward

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
)

// DefaultTimeout bounds one Send unless Options.Timeout says otherwise.
const DefaultTimeout = 10 * time.Second

// Options are what all targets have in common, and what must not stand in a URL. The zero
// value, and nil Options, work.
type Options struct {
	// Headers are added to each message. They replace the message's own of the same name;
	// names are compared without regard to case. The names of Metadata are tarry's.
	Headers []Header

	// Secrets sign what a webhook sends: each "whsec_" and 24 to 64 bytes in base64. While
	// secrets are rotated there are several, and each signs. Default: nothing is signed.
	// Other targets refuse them.
	Secrets []string

	// AllowPrivate lets a webhook call private, loopback, link-local and other addresses that
	// are not public. Default: only public ones. Other targets take no notice: their
	// addresses come from whoever runs the program.
	AllowPrivate bool

	// TLS is used for connections over TLS: authorities to trust, a certificate to show.
	// Default: the system's authorities.
	TLS *tls.Config

	// Timeout bounds one Send. Default DefaultTimeout.
	Timeout time.Duration

	// Logger is told what no Send can return, such as a connection that is lost while
	// nothing is sent. Default: slog.Default().
	Logger *slog.Logger
}

// Complete returns a copy of o, which may be nil, that shares nothing with it: its defaults
// filled in and checked. Open has done it; the packages of targets do it for those who
// call their New.
func (o *Options) Complete() (*Options, error) {
	var full Options
	if o != nil {
		full = *o
	}
	if err := full.check(); err != nil {
		return nil, err
	}
	full.Headers = slices.Clone(full.Headers)
	full.Secrets = slices.Clone(full.Secrets)
	full.TLS = full.TLS.Clone()
	if full.Timeout == 0 {
		full.Timeout = DefaultTimeout
	}
	if full.Logger == nil {
		full.Logger = slog.Default()
	}
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
