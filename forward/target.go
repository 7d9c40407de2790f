package forward

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/names"
)

// Target is a destination of messages. Send fits tarry.Handle as a handler.
type Target interface {
	// Send sends a message and returns nil once the target has it. Otherwise it returns an
	// error as a handler would: tarry.Bury if the target refuses it for good, with the
	// target's text; tarry.RetryIn if the target names a time; after any other error the
	// message is retried with its backoff. It connects when needed, so a target may be down
	// at the start. It ends with ctx, and after Options.Timeout at the latest. It may read
	// the body a moment longer, and never changes it. It is safe for concurrent use.
	Send(ctx context.Context, m *tarry.Message[[]byte]) error

	// Close waits for Sends in progress and closes the connections. Later Sends fail with
	// tarry.ErrClosed. Idempotent.
	Close() error
}

// Opener makes the target of a URL without connecting. The options are complete and checked,
// and the opener may keep them.
type Opener func(u *url.URL, o *Options) (Target, error)

var openers names.Openers[Opener]

// Register makes a kind of target available to Open under a URL scheme. Packages of targets
// call it from init. It panics if the scheme is registered already.
func Register(scheme string, open Opener) { openers.Register("target", scheme, open) }

// Schemes returns the registered URL schemes, sorted.
func Schemes() []string { return openers.Names() }

// Open returns the target of a URL, such as "https://shop.example/paid", without connecting.
// The package of the target must be imported. Errors are a *tarry.Error that wraps
// tarry.ErrInvalid, says what to do, and contains no password.
func Open(rawURL string, o *Options) (Target, error) {
	full, err := o.Complete()
	if err != nil {
		return nil, err
	}
	u, open, hint := openers.Find("target", "https://shop.example/paid", rawURL)
	if hint != "" {
		return nil, invalid("%s", hint)
	}
	return open(u, full)
}

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

// Header is a name and a value sent with a message.
type Header = engine.Header

// Headers that describe a message to its target.
const (
	HeaderID      = "Tarry-Id"      // decimal; the same in each attempt
	HeaderQueue   = "Tarry-Queue"   //
	HeaderKey     = "Tarry-Key"     // omitted if the message has none
	HeaderDue     = "Tarry-Due"     // RFC 3339 in UTC with three decimals
	HeaderAttempt = "Tarry-Attempt" // the first is 1
)

var ours = [...]string{HeaderID, HeaderQueue, HeaderKey, HeaderDue, HeaderAttempt}

const dueLayout = "2006-01-02T15:04:05.000Z07:00"

// Metadata are the headers sent with a message: tarry's own, then the message's, then
// Options.Headers. A message's header is left out if tarry or Options.Headers has the same
// name. The content type is not included: each target has its own place for it. o may be
// nil.
func Metadata(m *tarry.Message[[]byte], o *Options) []Header {
	var added []Header
	if o != nil {
		added = o.Headers
	}
	hs := make([]Header, 0, len(ours)+len(m.Headers)+len(added))
	hs = append(hs,
		Header{Name: HeaderID, Value: m.ID.String()},
		Header{Name: HeaderQueue, Value: m.Queue})
	if m.Key != "" {
		hs = append(hs, Header{Name: HeaderKey, Value: m.Key})
	}
	hs = append(hs,
		Header{Name: HeaderDue, Value: m.Due.UTC().Format(dueLayout)},
		Header{Name: HeaderAttempt, Value: strconv.FormatUint(uint64(m.Attempt), 10)})
	for _, h := range m.Headers {
		if !own(h.Name) && !named(added, h.Name) {
			hs = append(hs, h)
		}
	}
	return append(hs, added...)
}

// own reports whether the name is one of tarry's own headers.
func own(name string) bool {
	return slices.ContainsFunc(ours[:], func(o string) bool { return strings.EqualFold(o, name) })
}
