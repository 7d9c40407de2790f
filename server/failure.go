package server

import (
	"net/http"

	"github.com/tarryhq/tarry/internal/wire"
)

func refusal(status int, code, message, hint string) *wire.Error {
	return &wire.Error{Status: status, Code: code, Message: message, Hint: hint}
}

// fail answers with an error.
func (s *Server) fail(x *exchange, r *http.Request, err error) {
	f := wire.Shown(err)
	if f.Status >= 500 && f.Code != "unsupported" && r.Context().Err() == nil {
		s.cfg.Logger.Error("a request failed", "method", r.Method, "path", r.URL.Path, "status", f.Status, "error", err)
	}
	h := x.Header()
	switch f.Status {
	case http.StatusTooManyRequests, http.StatusInsufficientStorage, http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	}
	a := newAnswer()
	defer a.free()
	a.b = wire.AppendError(a.b, f)
	s.drain(x, r)
	_ = a.write(x, f.Status, false) // whoever asked is gone
}

// maxDrain is how much of a refused request is read, so that the client gets to
// read the answer instead of a broken connection.
const maxDrain = 8 << 20
