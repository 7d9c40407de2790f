package server

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

func refusal(status int, code, message, hint string) *wire.Error {
	return &wire.Error{Status: status, Code: code, Message: message, Hint: hint}
}

// fail answers with an error.
func (s *Server) fail(x *exchange, r *http.Request, err error) {
	f := wire.Shown(err)
	s.log(r, f, err)
	h := x.Header()
	switch {
	case mayRetry(f.Status):
		h.Set("Retry-After", strconv.Itoa(retryAfter(err)))
	case f.Status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	}
	a := newAnswer()
	defer a.free()
	a.b = wire.AppendError(a.b, f)
	if f.Status == http.StatusUnauthorized || s.cfg.Guard != nil && x.token == nil {
		s.leave(x, r)
	} else {
		s.drain(x, r)
	}
	_ = a.write(x, f.Status, false) // whoever asked is gone
}

// log tells the log of what failed by no fault of whoever asked, and still waits.
func (s *Server) log(r *http.Request, f *wire.Error, err error) {
	if f.Status >= 500 && f.Code != "unsupported" && r.Context().Err() == nil {
		s.cfg.Logger.Error("a request failed", logged(r, "status", f.Status, "error", err)...)
	}
}

// mayRetry reports whether an answer of a status says when to try again.
func mayRetry(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusInsufficientStorage || status == http.StatusServiceUnavailable
}

// retryAfter is in how many seconds trying again may help: one unless the error tells
// when, and a day at most.
func retryAfter(err error) int {
	var e *engine.Error
	if !errors.As(err, &e) || e.Until.IsZero() {
		return 1
	}
	return int(min(max(1, math.Ceil(time.Until(e.Until).Seconds())), 24*60*60))
}

// maxDrain is how much of a refused request is read, so that the client gets to
// read the answer instead of a broken connection.
const maxDrain = 8 << 20
