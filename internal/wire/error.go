package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Error is an error as the API shows it. Codes are those of engine.Code.
type Error struct {
	Status  int // of the answer; not in the JSON
	Code    string
	Message string
	Hint    string
	Until   time.Time // when trying again may help; zero: not known
	Live    *Pushed   // the existing message that a push conflicts with; nil: none
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// codes has the status and the meaning of each code.
var codes = []struct {
	code   string
	status int
	doc    string
}{
	{"invalid", http.StatusBadRequest, "the request is wrong; the message begins with the field"},
	{"unauthorized", http.StatusUnauthorized, "a token is missing, wrong or expired"},
	{"forbidden", http.StatusForbidden, "the token does not allow it, or the server does not answer for this host or to a page of this origin"},
	{"not_found", http.StatusNotFound, "there is no such message or schedule"},
	{"exists", http.StatusConflict, "a live message holds the key, or a finished one is remembered by it"},
	{"leased", http.StatusConflict, "too late: a worker holds the message"},
	{"stale", http.StatusConflict, "the message is in another state than if_state says, or the settings or the schedule are at another revision"},
	{"not_due", http.StatusConflict, "claimed too early, or the queue is paused"},
	{"lease_lost", http.StatusGone, "the lease was settled, taken over or cancelled"},
	{"too_large", http.StatusRequestEntityTooLarge, "the body or the request is over a limit"},
	{"limit", http.StatusTooManyRequests, "a limit of the store, or of the queue's settings, is reached"},
	{"unsupported", http.StatusNotImplemented, "the engine cannot do that"},
	{"unavailable", http.StatusServiceUnavailable, "the store does not answer, or the server shuts down or holds all it may; the outcome is unknown"},
	{"internal", http.StatusInternalServerError, "the server failed, and its log says how; or its store is damaged, and the message says where"},
}

// Meaning returns the code of an error, its status, and what the code means.
func Meaning(err error) (code string, status int, doc string) {
	code = engine.Code(err)
	if code == "limit" && errors.Is(err, engine.ErrNoSpace) {
		return code, http.StatusInsufficientStorage, "the disk of the store is full"
	}
	for _, c := range codes {
		if c.code == code {
			status, doc = c.status, c.doc
		}
	}
	return code, status, doc
}

var codeNames, codeDocs = func() (names, docs []string) {
	for _, c := range codes {
		names, docs = append(names, c.code), append(docs, c.code+": "+c.doc)
	}
	return names, docs
}()

// Wrong returns the error of a request that the caller has to change.
func Wrong(format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Code: "invalid", Message: fmt.Sprintf(format, args...)}
}

// WithHint returns e with a hint.
func (e *Error) WithHint(hint string) *Error {
	e.Hint = hint
	return e
}

// Shown returns err as the API shows it; err must not be nil. The message keeps internal
// details, since whoever reads it runs the server or an application that uses it.
func Shown(err error) *Error {
	if shown, ok := errors.AsType[*Error](err); ok {
		return shown
	}
	shown := new(Error)
	shown.Code, shown.Status, _ = Meaning(err)
	e, ok := errors.AsType[*engine.Error](err)
	if !ok {
		shown.Message = err.Error()
		return shown
	}
	if e.Err == engine.ErrInvalid && e.Hint != "" {
		// Only the hint says what is wrong.
		shown.Message = e.Hint
		return shown
	}
	bare := *e
	bare.Hint = ""
	shown.Message = strings.TrimPrefix(bare.Error(), "tarry: ")
	shown.Hint, shown.Until = e.Advice(), e.Until
	if shown.Hint == "" && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		shown.Hint = engine.HintUnknown
	}
	return shown
}

// remote is an error of the server: its message, and the error that errors.Is finds.
type remote struct {
	message string
	is      error
}

func (r *remote) Error() string { return r.message }
func (r *remote) Unwrap() error { return r.is }

// Err turns an error of the API into the error that the engine behind the server returned
// for op and ref. It wraps the same sentinel, and keeps message and hint.
func (e *Error) Err(op string, ref engine.Ref) error {
	own := &engine.Error{Op: op, Queue: ref.Queue, ID: ref.ID, Key: ref.Key}
	// The server names op and message as we do, but fewer of them in a call for many messages.
	message := e.Message
	for _, named := range []*engine.Error{own, {Op: op, Queue: ref.Queue}, {Op: op}} {
		if rest, ok := strings.CutPrefix(message, strings.TrimPrefix(named.Error(), "tarry: ")+": "); ok {
			message = rest
			break
		}
	}
	is := engine.FromCode(e.Code)
	if is == engine.ErrLimit && strings.Contains(e.Message, "no space left on disk") {
		is = engine.ErrNoSpace
	}
	if e.Code == "internal" && strings.Contains(e.Message, engine.ErrDamaged.Error()) {
		is = engine.ErrDamaged
	}
	own.Hint, own.Until = e.Hint, e.Until
	switch {
	case is == engine.ErrInvalid && e.Hint == "":
		own.Hint, own.Err = e.Message, is
	case is != nil && message == is.Error():
		own.Err = is
	default:
		own.Err = &remote{message, is}
	}
	return own
}

// AppendError appends an error as the answer to a request.
func AppendError(b []byte, e *Error) []byte {
	err := error(e)
	return Failed.Append(b, &err)
}

// Failed is the answer to a request that failed; nil: it did not. The error is an *Error.
var Failed = answerObject("Failure", "What every error looks like.",
	required("error", asFailure, itself, ""))

// asFailure is an error, which is read as an *Error.
var asFailure = kind[error]{
	is: errorFields.Ref(),
	read: func(r *Reader, _ string, err *error) {
		e := new(Error)
		errorFields.read(r, "error", e)
		*err = e
	},
	append: func(b []byte, err *error) []byte { return errorFields.Append(b, Shown(*err)) },
	zero:   func(err *error) bool { return *err == nil },
}

// live returns the existing message that a push conflicts with.
func live(e *Error) *Pushed {
	if e.Live == nil {
		e.Live = new(Pushed)
	}
	return e.Live
}

func noneLive(e *Error) bool    { return e.Live == nil }
func notFinished(e *Error) bool { return e.Live == nil || e.Live.State != engine.Finished }

var errorFields = answerObject("Error", "What went wrong. Programs act on the code. When a message is in the way of a single push, it is described too.",
	required("code", asText.described(wordsSchema(codeNames...)), func(e *Error) *string { return &e.Code }, strings.Join(codeDocs, "\n")),
	required("message", asText, func(e *Error) *string { return &e.Message }, "for people; may change"),
	required("hint", asText, func(e *Error) *string { return &e.Hint }, "what to do about it, for people; may be empty"),
	optional("until", asInstant, func(e *Error) *time.Time { return &e.Until }, "from when on trying again may help"),
	optional("id", asID, func(e *Error) *engine.ID { return &live(e).ID }, "of the message in the way").unless(noneLive),
	optional("queue", asQueue, func(e *Error) *string { return &live(e).Queue }, "its queue").unless(noneLive),
	optional("key", asText, func(e *Error) *string { return &live(e).Key }, "its key").unless(noneLive),
	optional("due", asInstant, func(e *Error) *time.Time { return &live(e).Due }, "when it is due").unless(noneLive),
	optional("state", asState, func(e *Error) *engine.State { return &live(e).State }, "where it stands").unless(noneLive),
	optional("ending", asEnding, func(e *Error) *engine.Ending { return &live(e).Ending }, "how it went, if it is finished").unless(notFinished),
	optional("ended", asInstant, func(e *Error) *time.Time { return &live(e).Ended }, "when").unless(notFinished))
