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
	// Receive connects, calls Sink.Report with nil once it receives, and hands over messages
	// until ctx ends or it fails. It returns a *Trouble, or nil if ctx ended. After an error
	// the intake calls it again. When ctx has ended, messages can be settled until Close.
	Receive(ctx context.Context, to Sink) error

	// Test connects, declares what it may, and says what it found. It receives nothing.
	Test(ctx context.Context) (found string, err error)

	// Close closes the connection. What is not settled stays at the source. Idempotent.
	Close() error
}

// Sink takes the messages of a source. It is safe for concurrent use.
type Sink interface {
	// Take takes a message. It blocks while the intake is full. Once the context of Receive
	// has ended it drops the message, which stays unsettled.
	Take(m *Message)

	// Report says that the source receives, or with a *Trouble that something is wrong
	// although it goes on.
	Report(trouble error)
}

// Message is a message of a source.
type Message struct {
	// Draft is the message to push. The intake sets Queue, OnConflict and Remember. A delay
	// counts from Sink.Take.
	Draft tarry.Draft

	// SenderID is the id that its sender gave it, from which a message without a key gets
	// one. Empty: none.
	SenderID string

	// Cancel is a key to cancel; then Draft is not pushed.
	Cancel string

	// Refused is why the source knows that it can never be pushed. Nil: the intake finds out.
	Refused error

	// Redelivered says that the source may have handed it over before.
	Redelivered bool

	// Settle ends the message at its source. With nil the store has it: it may be acked. With
	// an error it can never be pushed: the source sets it aside with this reason, then acks.
	// It is called at most once, does not block for long, and does nothing after Close.
	Settle func(refused error)

	taken    time.Time
	doubtful bool // it may have been pushed
}

// Reason returns why a message was refused, for where its source sets it aside.
func Reason(refused error) string {
	const most = 500
	text := refused.Error()
	if e, ok := errors.AsType[*tarry.Error](refused); ok && e.Hint != "" {
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
