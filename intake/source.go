package intake

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/names"
)

// Source is where an intake takes messages from.
type Source interface {
	// Connect connects, declares what it may, and says what it found. It receives nothing.
	Connect(ctx context.Context) (c Conn, found string, err error)
}

// Conn is a connection to a source. Its errors are a *Trouble. What is not settled comes again.
type Conn interface {
	// Receive calls Sink.Report with nil, then hands over messages until ctx ends or the
	// connection is lost. It is called once.
	Receive(ctx context.Context, to *Sink) error

	// Ack acks messages, also during and after Receive, from another goroutine.
	Ack(ms []*Message) error

	// SetAside keeps a message that can never be pushed elsewhere at its source, with the
	// reason. Then it is acked. After an error that is tried again. It is called as Ack is.
	SetAside(m *Message, reason string) error

	// Close closes the connection, once what was settled is acked.
	Close()
}

// Message is a message of a source.
type Message struct {
	// Draft is the message to push. The intake sets Queue, OnConflict and Remember. A delay
	// counts from Sink.Take.
	Draft tarry.Draft

	// ID is its name at the source, if it may come again before it is settled; then it is
	// dropped. Empty: it does not.
	ID string

	// SenderID is the id that its sender gave it. A message without a key gets one of it, or
	// else of its ID. Empty: none.
	SenderID string

	// Cancel is a key to cancel; then Draft is not pushed.
	Cancel string

	// Refused is why the source knows that it can never be pushed. Nil: the intake finds out.
	Refused error

	// Redelivered says that the source may have handed it over before.
	Redelivered bool

	// Receipt is what the source needs to settle it.
	Receipt any

	taken    time.Time
	doubtful bool   // it may have been pushed
	counter  *int64 // of the job's Counts, if the store has taken it
	err      error  // why the store has not
}

// reason returns why a message was refused, for where its source sets it aside.
func (m *Message) reason() string {
	const most = 500
	text := m.Refused.Error()
	if e, ok := errors.AsType[*tarry.Error](m.Refused); ok && e.Hint != "" {
		text = e.Hint
	}
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// Trouble is why a source does not receive, or not all.
type Trouble struct {
	Code string // for programs, such as "no_queue"
	Err  error
	Hint string // what to do
}

// Codes of Trouble that do not depend on the kind of source.
const (
	CodeStore       = "store"       // the store takes no messages
	CodeUnreachable = "unreachable" // the source does not answer
	CodeCredentials = "credentials" // wrong user or password
	CodeForbidden   = "forbidden"   // the user lacks a right
	CodeFailed      = "failed"      // anything else
)

// Error returns the cause and the hint.
func (t *Trouble) Error() string {
	if t.Hint == "" {
		return t.Err.Error()
	}
	return t.Err.Error() + "; " + t.Hint
}

// Unwrap returns the cause.
func (t *Trouble) Unwrap() error { return t.Err }

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

var openers names.Openers[Opener]

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

// Field sets what a named value beside a message's body says: delay is a duration such as
// 30m, due a time as in RFC 3339, key the message's key, cancel a key to cancel, content-type
// that of the body. Case does not count. Anything else is a header of the message. A value
// that is wrong has the message refused.
func (m *Message) Field(name, value string) {
	var err error
	d := &m.Draft
	switch strings.ToLower(name) {
	case "delay":
		if d.Due.In, err = duration.Parse(value); err != nil {
			err = errors.New("it is no duration such as 30m")
		}
	case "due":
		if d.Due.At, err = time.Parse(time.RFC3339Nano, value); err != nil {
			err = errors.New("it is no time such as 2030-01-31T12:00:00Z")
		}
	case "key":
		d.Key = value
	case "cancel":
		if m.Cancel = value; value == "" {
			err = errors.New("it is empty")
		}
	case "content-type":
		d.ContentType = value
	default:
		d.Headers = append(d.Headers, tarry.MessageHeader{Name: name, Value: value})
	}
	if err == nil && d.Due.In != 0 && !d.Due.At.IsZero() {
		err = errors.New("both delay and due are given")
	}
	if err != nil && m.Refused == nil {
		m.Refused = fmt.Errorf("%s: %w", strings.ToLower(name), err)
	}
}
