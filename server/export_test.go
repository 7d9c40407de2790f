package server

import (
	"bytes"
	"io"
	"net/http"
)

// Watch hands what s takes and answers from now on to f, whatever way it comes: the
// request, as much of its body as was read, and the answer.
func (s *Server) Watch(f func(r *http.Request, body []byte, status int, header http.Header, answer []byte)) {
	for i := range s.table {
		handle := s.table[i].handle
		s.table[i].handle = func(x *exchange, r *http.Request) error {
			w := &watched{ResponseWriter: x.ResponseWriter, status: http.StatusOK}
			read := &bytes.Buffer{}
			x.ResponseWriter = w
			body := r.Body
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(body, read), body}
			if body == http.NoBody {
				r.Body = body
			}
			if err := handle(x, r); err != nil {
				s.fail(x, r, err)
			}
			x.ResponseWriter, r.Body = w.ResponseWriter, body
			if !w.broken {
				f(r, read.Bytes(), w.status, w.Header(), w.answer.Bytes())
			}
			return nil
		}
	}
}

// watched is the writer of an answer that is watched.
type watched struct {
	http.ResponseWriter
	status int
	answer bytes.Buffer
	broken bool
}

func (w *watched) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(b []byte) (int, error) {
	w.answer.Write(b)
	n, err := w.ResponseWriter.Write(b)
	w.broken = w.broken || err != nil
	return n, err
}

func (w *watched) FlushError() error { return flush(w.ResponseWriter) }

func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
