package server

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/notify"
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
	s.drain(x, r, f.Status == http.StatusUnauthorized || s.cfg.Guard != nil && x.token == nil)
	_ = a.write(x, f.Status, false) // on an error the client is gone
}

// log logs a failed request if the server is to blame and the client has not gone.
func (s *Server) log(r *http.Request, f *wire.Error, err error) {
	if f.Status < 500 || f.Code == "unsupported" || r.Context().Err() != nil {
		return
	}
	if left, ok := s.failureLines.of(f.Status).Next(); ok {
		s.cfg.Logger.Error("a request failed", logged(r, "status", f.Status, "error", err, "not_told", left)...)
	}
}

// failures bounds the log lines about failed requests: while the store is down, every request
// fails.
type failures struct{ full, away, others *notify.Lines }

func newFailures() failures {
	return failures{full: notify.NewLines(1, time.Minute), away: notify.NewLines(100, time.Second), others: notify.NewLines(100, time.Second)}
}

// of returns the lines for a status.
func (f *failures) of(status int) *notify.Lines {
	switch status {
	case http.StatusInsufficientStorage:
		return f.full
	case http.StatusServiceUnavailable:
		return f.away
	}
	return f.others
}

// mayRetry reports whether an answer with this status says when to try again.
func mayRetry(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusInsufficientStorage || status == http.StatusServiceUnavailable
}

// retryAfter returns in how many seconds to try again: one unless the error says when, and at
// most a day.
func retryAfter(err error) int {
	e, ok := errors.AsType[*engine.Error](err)
	if !ok || e.Until.IsZero() {
		return 1
	}
	return int(min(max(1, math.Ceil(time.Until(e.Until).Seconds())), 24*60*60))
}

// maxDrain is how much of a refused request is read. A client that is cut off while it sends
// may never see the answer.
const maxDrain = 8 << 20
