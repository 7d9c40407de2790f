package intake

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
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
