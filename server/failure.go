package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// failure is an error as the API shows it.
type failure struct {
	status  int
	code    string
	message string
	hint    string
	live    *tarry.Pushed // the message in the way of a push
}

func (f *failure) Error() string { return f.message }

// statuses gives the status of each code.
var statuses = map[string]int{
	"invalid":      http.StatusBadRequest,
	"unauthorized": http.StatusUnauthorized,
	"forbidden":    http.StatusForbidden,
	"not_found":    http.StatusNotFound,
	"exists":       http.StatusConflict,
	"leased":       http.StatusConflict,
	"not_due":      http.StatusConflict,
	"lease_lost":   http.StatusGone,
	"too_large":    http.StatusRequestEntityTooLarge,
	"limit":        http.StatusTooManyRequests,
	"internal":     http.StatusInternalServerError,
	"unsupported":  http.StatusNotImplemented,
	"unavailable":  http.StatusServiceUnavailable,
}

func refusal(status int, code, message, hint string) *failure {
	return &failure{status: status, code: code, message: message, hint: hint}
}

// wrong is a request that the caller has to change.
func wrong(format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, code: "invalid", message: fmt.Sprintf(format, args...)}
}

func (f *failure) withHint(hint string) *failure {
	f.hint = hint
	return f
}

// toFailure shows any error as the API does. What went wrong inside stays in the
// message: the one who reads it is the one who runs the server or talks to him.
func toFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	code := engine.Code(err)
	f = &failure{status: statuses[code], code: code}
	if errors.Is(err, engine.ErrNoSpace) {
		f.status = http.StatusInsufficientStorage
	}
	var e *engine.Error
	if !errors.As(err, &e) {
		f.message = err.Error()
		return f
	}
	if e.Err == engine.ErrInvalid && e.Hint != "" {
		// The hint is what says anything.
		f.message = e.Hint
		return f
	}
	bare := *e
	bare.Hint = ""
	f.message = strings.TrimPrefix(bare.Error(), "tarry: ")
	f.hint = e.Hint
	if f.hint == "" && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		f.hint = "the outcome is unknown; repeating with the same key is safe"
	}
	return f
}

// appendError appends "error":{…}, with what is in the way beside message and hint.
func appendError(b []byte, f *failure) []byte {
	b = append(b, `"error":{"code":"`...)
	b = append(b, f.code...)
	b = append(b, `","message":`...)
	b = appendString(b, f.message)
	b = append(b, `,"hint":`...)
	b = appendString(b, f.hint)
	if f.live != nil {
		b = appendPushed(append(b, ','), f.live)
	}
	return append(b, '}')
}

func appendString(b []byte, s string) []byte {
	// Invalid UTF-8 is replaced; that is all the error could tell.
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// fail answers with an error.
func (s *Server) fail(x *exchange, r *http.Request, err error) {
	f := toFailure(err)
	if f.status >= 500 && f.code != "unsupported" && r.Context().Err() == nil {
		s.cfg.Logger.Error("a request failed", "method", r.Method, "path", r.URL.Path, "status", f.status, "error", err)
	}
	h := x.Header()
	switch f.status {
	case http.StatusTooManyRequests, http.StatusInsufficientStorage, http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	}
	a := newAnswer()
	defer a.free()
	a.b = append(a.b, '{')
	a.b = appendError(a.b, f)
	a.b = append(a.b, '}')
	s.drain(x, r)
	_ = a.write(x, f.status) // whoever asked is gone
}

// maxDrain is how much of a refused request is read, so that the client gets to
// read the answer instead of a broken connection.
const maxDrain = 8 << 20
