package apicheck

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// metricsPath is the path for monitoring, which is not part of the API.
const metricsPath = "/metrics"

// Handler checks all requests and answers of a handler against the document, including
// requests that are rejected early. report gets the deviations; it may be called
// concurrently. Answers that the client did not wait for are not checked.
func (c *Checker) Handler(next http.Handler, report func(error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := r.Method + " " + kindOf(r.URL.EscapedPath())
		rec, requestBody := &recorder{ResponseWriter: w, c: c, kind: kind, record: c.pick(kind)}, new(bytes.Buffer)
		whole := rec.record
		if body := r.Body; whole && body != nil && body != http.NoBody {
			r = r.WithContext(r.Context()) // net/http checks the type of its own body
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(body, requestBody), body}
		}
		next.ServeHTTP(rec, r)
		if rec.status == 0 && r.Context().Err() == nil {
			rec.status = http.StatusOK
		}
		if rec.broken || !rec.record || rec.status == 0 || rec.status < 400 && (!whole || r.URL.Path == metricsPath) {
			return
		}
		if err := c.Check(r, requestBody.Bytes(), Answer{Status: rec.status, Header: w.Header(), Body: rec.answer.Bytes()}); err != nil {
			report(err)
		}
	})
}

// kindOf returns what calls of the same kind have in common.
func kindOf(path string) string {
	segments := strings.Split(path, "/")
	return strconv.Itoa(len(segments)) + segments[len(segments)-1]
}

// pick reports whether to check another call of a kind.
func (c *Checker) pick(kind string) bool {
	if c.Few <= 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = make(map[string]int)
	}
	if len(c.seen) > maxKinds {
		kind = ""
	}
	c.seen[kind]++
	n := c.seen[kind]
	return n <= c.Few || n%c.Few == 0
}

// maxKinds bounds the kinds of calls; the rest count as one.
const maxKinds = 1000

// recorder is a ResponseWriter that records the answer.
type recorder struct {
	http.ResponseWriter
	c      *Checker
	kind   string
	record bool // record the answer
	status int  // 0: nothing was written
	answer bytes.Buffer
	broken bool
}

func (w *recorder) WriteHeader(status int) {
	if status >= http.StatusOK && w.status == 0 {
		w.status = status
		w.record = w.record || status >= 400 && w.c.pick(w.kind+" "+strconv.Itoa(status))
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.record {
		w.answer.Write(b)
	}
	n, err := w.ResponseWriter.Write(b)
	w.broken = w.broken || err != nil
	return n, err
}

// Unwrap supports http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// FlushError flushes what was written, and returns the error for handlers that need it.
func (w *recorder) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.broken = w.broken || err != nil
	return err
}
