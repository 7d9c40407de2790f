package apicheck

import (
	"bytes"
	"io"
	"net/http"
)

// machines are the paths that are no calls of an API, but for those who watch a server.
const machines = "/metrics"

// Handler holds all that a handler takes and answers against the document: also what is
// refused before anything looks at it. report, which is told of what does not fit, may be
// called by many goroutines. What was answered to a client that had gone is not looked at.
func (c *Checker) Handler(next http.Handler, report func(error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, read := &watched{ResponseWriter: w}, new(bytes.Buffer)
		if body := r.Body; body != nil && body != http.NoBody {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(body, read), body}
		}
		next.ServeHTTP(seen, r)
		if seen.broken || seen.status == 0 && r.Context().Err() != nil || r.URL.Path == machines && seen.status < 400 {
			return
		}
		if seen.status == 0 {
			seen.status = http.StatusOK
		}
		if err := c.Check(r, read.Bytes(), Answer{Status: seen.status, Header: w.Header(), Body: seen.answer.Bytes()}); err != nil {
			report(err)
		}
	})
}

// watched is the writer of an answer that is watched.
type watched struct {
	http.ResponseWriter
	status int // 0: nothing was written
	answer bytes.Buffer
	broken bool
}

func (w *watched) WriteHeader(status int) {
	if status >= http.StatusOK && w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.answer.Write(b)
	n, err := w.ResponseWriter.Write(b)
	w.broken = w.broken || err != nil
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
