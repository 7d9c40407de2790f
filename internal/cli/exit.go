package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
)

// The exit codes. Scripts rely on them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitUnavailable = 5
)

// exitError is an error that sets the exit code, whatever its cause.
type exitError struct {
	code       int
	line, hint string
	err        error // the cause; nil: none
}

func (e *exitError) Error() string {
	if e.hint == "" {
		return e.line
	}
	return e.line + " (" + e.hint + ")"
}
func (e *exitError) Unwrap() error { return e.err }

// usagef returns an error in the call or the configuration.
func usagef(hint, format string, args ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, args...), hint, nil}
}

// failedf returns a failure of this call, with the cause err, which may be nil.
func failedf(err error, hint, format string, args ...any) error {
	return &exitError{exitFailed, fmt.Sprintf(format, args...), hint, err}
}

// failed makes err a failure of this call, whatever exit code it would have.
func failed(err error) error { return failedf(err, "", "%v", err) }

// exitCode returns the exit code of an error.
func exitCode(ctx context.Context, err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if interrupted(ctx, err) {
		return exitFailed
	}
	switch engine.Code(err) {
	case "invalid":
		return exitUsage
	case "not_found":
		return exitNotFound
	case "exists", "leased", "stale", "not_due":
		return exitConflict
	case "unavailable":
		return exitUnavailable
	}
	return exitFailed
}

// interrupted reports whether err only says that the user wants to stop.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// hints says, by code, what to do about an error without a hint of its own, and if a server
// cannot be reached.
var hints = map[string]string{
	"not_found":    "tarry ls QUEUE shows the live messages, with --state dead or finished the others",
	"exists":       "choose with --on-conflict what a push of a live key does: keep, replace, keep_due or rearm",
	"leased":       "too late: a worker holds it; tarry get shows until when",
	"stale":        "look at it again, and decide anew",
	"not_due":      "tarry get shows when it is due",
	"too_large":    "serve with a larger --max-body, or push a reference to the data",
	"limit":        "make room, or push more slowly",
	"unsupported":  "use another engine for this",
	"unavailable":  "is it running? tarry serve starts a server, --server names another",
	"unauthorized": "give the token that the server expects",
	"forbidden":    "use a token that may do this",
}

// report writes an error as one line with a hint, and returns the exit code.
func (p *Program) report(ctx context.Context, err error) int {
	line := err.Error()
	if interrupted(ctx, err) {
		line = "interrupted"
	} else if e, ok := errors.AsType[*engine.Error](err); ok && (e.Hint == "" || errors.Is(err, httpengine.ErrNoAnswer)) {
		if h := hints[engine.Code(err)]; h != "" {
			line += " (" + h + ")"
		}
	}
	fmt.Fprintln(p.Stderr, oneLine(line))
	return exitCode(ctx, err)
}
