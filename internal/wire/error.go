package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
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

// statuses has the status of each error that engine.Code has a name for, in the order of
// Code: the first that errors.Is finds counts.
var statuses = []struct {
	err    error
	status int
	doc    string
}{
	{engine.ErrInvalid, http.StatusBadRequest, "the request is wrong; the message begins with the field"},
	{engine.ErrUnauthorized, http.StatusUnauthorized, "a token is missing, wrong or expired"},
	{engine.ErrForbidden, http.StatusForbidden, "the token does not allow it, or the server does not answer for this host or to a page of this origin"},
	{engine.ErrNotFound, http.StatusNotFound, "there is no such message"},
	{engine.ErrExists, http.StatusConflict, "a live message holds the key, or a finished one is remembered by it"},
	{engine.ErrLeased, http.StatusConflict, "too late: a worker holds the message"},
	{engine.ErrStale, http.StatusConflict, "the message is in another state than if_state says, or the settings are at another revision"},
	{engine.ErrNotDue, http.StatusConflict, "claimed too early, or the queue is paused"},
	{engine.ErrLeaseLost, http.StatusGone, "the lease was settled, taken over or cancelled"},
	{engine.ErrTooLarge, http.StatusRequestEntityTooLarge, "the body or the request is over a limit"},
	{engine.ErrNoSpace, http.StatusInsufficientStorage, "the disk of the store is full"},
	{engine.ErrLimit, http.StatusTooManyRequests, "a limit of the store, or of the queue's settings, is reached"},
	{engine.ErrUnsupported, http.StatusNotImplemented, "the engine cannot do that"},
	{engine.ErrUnavailable, http.StatusServiceUnavailable, "the store does not answer, or the server shuts down or holds all it may; the outcome is unknown"},
	{engine.ErrClosed, http.StatusServiceUnavailable, ""},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, ""},
	{context.Canceled, http.StatusServiceUnavailable, ""},
}

// internalDoc says what the code "internal" means.
const internalDoc = "the server failed, and its log says how; or its store is damaged, and the message says where"

// Meaning returns the code of an error, its status, and what the code means.
func Meaning(err error) (code string, of int, doc string) {
	for _, s := range statuses {
		if s.err == err {
			return engine.Code(err), s.status, s.doc
		}
	}
	return "internal", http.StatusInternalServerError, internalDoc
}

// codes returns all codes of errors.
func codes() (all []string) {
	for _, s := range statuses {
		if c := engine.Code(s.err); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return append(all, "internal")
}

func codeDoc() string {
	var b strings.Builder
	for _, code := range codes() {
		doc := internalDoc
		if err := engine.FromCode(code); err != nil {
			_, _, doc = Meaning(err)
		}
		fmt.Fprintf(&b, "%s: %s\n", code, doc)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func status(err error) int {
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s.status
		}
	}
	return http.StatusInternalServerError
}

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
	var shown *Error
	if errors.As(err, &shown) {
		return shown
	}
	shown = &Error{Status: status(err), Code: engine.Code(err)}
	var e *engine.Error
	if !errors.As(err, &e) {
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
	return append(appendError(append(b, '{'), e), '}')
}

// appendError appends "error":{…}, with the fields of Live beside message and hint.
func appendError(b []byte, e *Error) []byte {
	b = appendWord(b, `"error":{"code":`, e.Code)
	b = appendText(b, `,"message":`, e.Message)
	b = appendText(b, `,"hint":`, e.Hint)
	if !e.Until.IsZero() {
		b = appendTime(b, `,"until":`, e.Until)
	}
	if e.Live != nil {
		b = appendPushed(append(b, ','), e.Live)
	}
	return append(b, '}')
}

// Failed is the shape of the answer to a request that failed.
var Failed = answered("Failure", "What every error looks like.",
	must("error", errorFields.Ref(), ""))

// Failure reads an error that answers a request; nil: there is none.
func (r *Reader) Failure() (e *Error) {
	r.fields("answer", Failed, func(int) { e = r.failure() })
	return e
}

var errorFields = answered("Error", "What went wrong. Programs act on the code. When a message is in the way of a single push, it is described too.",
	must("code", schema.Words(codes()...), codeDoc()),
	must("message", isText, "for people; may change"),
	must("hint", isText, "what to do about it, for people; may be empty"),
	may("id", isID, "of the message in the way"),
	may("queue", isQueue, "its queue"),
	may("key", isText, "its key"),
	may("due", isInstant, "when it is due"),
	may("state", isState, "where it stands"),
	may("ending", isEnding, "how it went, if it is finished"),
	may("ended", isInstant, "when"),
	may("until", isInstant, "from when on trying again may help"))

// failure reads the content of an error. Live is set if there is an id.
func (r *Reader) failure() *Error {
	e, live := new(Error), new(Pushed)
	seen := r.fields("error", errorFields, func(f int) {
		switch f {
		case 0:
			e.Code = r.text("code")
		case 1:
			e.Message = r.text("message")
		case 2:
			e.Hint = r.text("hint")
		case 3:
			live.ID = r.id("id")
		case 4:
			live.Queue = r.queueName()
		case 5:
			live.Key = r.text("key")
		case 6:
			live.Due = r.time("due")
		case 7:
			live.State = r.state("state")
		case 8:
			live.Ending = r.ending("ending")
		case 9:
			live.Ended = r.time("ended")
		case 10:
			e.Until = r.time("until")
		}
	})
	if seen&(1<<3) != 0 {
		e.Live = live
	}
	return e
}
