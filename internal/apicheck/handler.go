package apicheck

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// machines is the path for monitoring, which is not part of the API.
const machines = "/metrics"

// Handler checks all requests and answers of a handler against the document, including
// requests that are rejected early. report gets the deviations; it may be called
// concurrently. Answers to a client that has gone are not checked.
func (c *Checker) Handler(next http.Handler, report func(error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shape := r.Method + " " + shapeOf(r.URL.EscapedPath())
		seen, read := &watched{ResponseWriter: w, c: c, shape: shape, keep: c.pick(shape)}, new(bytes.Buffer)
		whole := seen.keep
		if body := r.Body; whole && body != nil && body != http.NoBody {
			r = r.WithContext(r.Context()) // net/http checks the type of its own body
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(body, read), body}
		}
		next.ServeHTTP(seen, r)
		if seen.status == 0 && r.Context().Err() == nil {
			seen.status = http.StatusOK
		}
		if seen.broken || !seen.keep || seen.status == 0 || seen.status < 400 && (!whole || r.URL.Path == machines) {
			return
		}
		if err := c.Check(r, read.Bytes(), Answer{Status: seen.status, Header: w.Header(), Body: seen.answer.Bytes()}); err != nil {
			report(err)
		}
	})
}

// shapeOf returns what calls of the same kind have in common.
func shapeOf(path string) string {
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

// watched is a ResponseWriter that records the answer.
type watched struct {
	http.ResponseWriter
	c      *Checker
	shape  string
	keep   bool // record the answer
	status int  // 0: nothing was written
	answer bytes.Buffer
	broken bool
}

func (w *watched) WriteHeader(status int) {
	if status >= http.StatusOK && w.status == 0 {
		w.status = status
		w.keep = w.keep || status >= 400 && w.c.pick(w.shape+" "+strconv.Itoa(status))
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.keep {
		w.answer.Write(b)
	}
	n, err := w.ResponseWriter.Write(b)
	w.broken = w.broken || err != nil
	return n, err
}

// Unwrap supports http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// FlushError flushes what was written, and returns the error for handlers that need it.
func (w *watched) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.broken = w.broken || err != nil
	return err
}
