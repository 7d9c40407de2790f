package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// read reads the JSON of a request. The caller frees the input when, and only when,
// nobody can hold on to its bodies any more.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (*input, error) {
	if err := checkType(r); err != nil {
		return nil, err
	}
	if r.ContentLength > int64(s.cfg.MaxRequest) {
		return nil, s.tooLarge()
	}
	s.hurry(w, true)
	in := inputs.Get().(*input)
	buf := bytes.NewBuffer(in.data[:0])
	if n := int(r.ContentLength); n > 0 {
		buf.Grow(n + bytes.MinRead) // so that the last read meets the end
	}
	if _, err := buf.ReadFrom(io.LimitReader(r.Body, int64(s.cfg.MaxRequest)+1)); err != nil {
		return nil, brokenOff(err)
	}
	if buf.Len() > s.cfg.MaxRequest {
		return nil, s.tooLarge()
	}
	s.hurry(w, false)
	in.parse(buf.Bytes())
	return in, nil
}

// checkType wants JSON, so that no form of a foreign web page gets through.
func checkType(r *http.Request) error {
	if !isType(r.Header.Get("Content-Type")) {
		return &failure{http.StatusUnsupportedMediaType, "invalid", "the Content-Type must be application/json",
			"add the header Content-Type: application/json"}
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return &failure{http.StatusUnsupportedMediaType, "invalid", "the Content-Encoding must be identity", "send the JSON as it is"}
	}
	return nil
}

func isType(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	t, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(t), "application/json")
}

func (s *Server) tooLarge() error {
	return &failure{http.StatusRequestEntityTooLarge, "too_large",
		"the request is larger than " + strconv.Itoa(s.cfg.MaxRequest) + " bytes", "send fewer messages in one request"}
}

func brokenOff(err error) error {
	var ne interface{ Timeout() bool }
	if errors.As(err, &ne) && ne.Timeout() {
		return &failure{http.StatusRequestTimeout, "invalid", "the request's body did not come in time", ""}
	}
	return wrong("the request's body broke off: %v", err)
}

// drain reads what a refused request still has to send, so that the client gets to
// see the answer; of a flood only so much.
func (s *Server) drain(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	s.hurry(w, true)
	n, err := io.CopyN(io.Discard, r.Body, maxDrain)
	if err == nil && n == maxDrain {
		w.Header().Set("Connection", "close")
	}
}

// hurry bounds how long the client may take to send the request's body from now on,
// or no longer does.
func (s *Server) hurry(w http.ResponseWriter, on bool) {
	var t time.Time
	if on {
		t = time.Now().Add(s.cfg.ReadTimeout)
	}
	// A writer that has no connection below it needs no deadline.
	_ = http.NewResponseController(w).SetReadDeadline(t)
}
