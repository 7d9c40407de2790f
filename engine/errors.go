package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors that programs act on, for errors.Is. Code returns their names.
var (
	ErrInvalid      = errors.New("invalid")
	ErrUnauthorized = errors.New("unauthorized")
	ErrForbidden    = errors.New("forbidden")
	ErrNotFound     = errors.New("not found")
	ErrExists       = errors.New("key is taken")
	ErrLeased       = errors.New("message is leased")
	ErrStale        = errors.New("changed meanwhile")
	ErrNotDue       = errors.New("message is not due")
	ErrLeaseLost    = errors.New("lease is lost")
	ErrTooLarge     = errors.New("too large")
	ErrLimit        = errors.New("limit reached")
	ErrUnsupported  = errors.New("not supported by this engine")
	ErrUnavailable  = errors.New("store is not reachable")
	ErrDamaged      = errors.New("store is damaged")
	ErrClosed       = errors.New("closed")

	// ErrNoSpace is the ErrLimit of a full disk.
	ErrNoSpace = fmt.Errorf("no space left on disk: %w", ErrLimit)
)

// HintUnknown is the hint of an error that leaves open whether the call was carried out: its
// context ended, or its answer was lost.
const HintUnknown = "the outcome is unknown"

// Advice returns the hint; for a push with an unknown outcome it adds that repeating is
// safe.
func (e *Error) Advice() string {
	if strings.HasPrefix(e.Op, "push") && strings.HasSuffix(e.Hint, HintUnknown) {
		return e.Hint + "; repeating with the same key is safe"
	}
	return e.Hint
}

// codes is ordered: the first that errors.Is matches names the error.
var codes = []struct {
	err  error
	code string
}{
	{ErrInvalid, "invalid"},
	{ErrUnauthorized, "unauthorized"},
	{ErrForbidden, "forbidden"},
	{ErrNotFound, "not_found"},
	{ErrExists, "exists"},
	{ErrLeased, "leased"},
	{ErrStale, "stale"},
	{ErrNotDue, "not_due"},
	{ErrLeaseLost, "lease_lost"},
	{ErrTooLarge, "too_large"},
	{ErrLimit, "limit"},
	{ErrUnsupported, "unsupported"},
	{ErrUnavailable, "unavailable"},
	{ErrClosed, "unavailable"},
	{context.DeadlineExceeded, "unavailable"},
	{context.Canceled, "unavailable"},
}

// Code names err as the HTTP API does: "invalid", "not_found", "exists", …; "internal" for
// ErrDamaged and for errors of other packages; "" for nil.
func Code(err error) string {
	if err == nil {
		return ""
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return "internal"
}

// FromCode returns the error with this code, or nil.
func FromCode(code string) error {
	for _, c := range codes {
		if c.code == code {
			return c.err
		}
	}
	return nil
}

// Error says what went wrong with which message, and what to do about it. It wraps one of
// the errors above or an error of another package.
type Error struct {
	Op    string // "push", "lease", "settle", …
	Queue string
	ID    ID
	Key   string
	Hint  string    // advice for people
	Until time.Time // ErrLimit: when a retry may succeed; zero: unknown
	Err   error
}

// Error returns one line: op, queue, message, what went wrong and the hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("tarry: ")
	b.WriteString(e.Op)
	if e.Queue != "" {
		fmt.Fprintf(&b, " %s", e.Queue)
	}
	switch {
	case e.ID != 0:
		fmt.Fprintf(&b, " id %s", e.ID)
	case e.Key != "":
		fmt.Fprintf(&b, " key %q", e.Key)
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString(" (")
		b.WriteString(e.Advice())
		b.WriteString(")")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
