package httpengine

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// refusalMost bounds how many bytes are read of an answer that refuses a stream.
const refusalMost = 64 << 10

// Stream begins a GET of the server's API that answers with server-sent events, such as
// /v1/live. path is percent-encoded and begins with /v1/. The stream goes on after the event
// with the id last; "" is none. The reader returns events until the server ends them, ctx
// ends or the engine is closed. The caller must close it. Options.Timeout bounds only the
// wait for the first byte. Errors are those of Fetch.
func (e *Engine) Stream(ctx context.Context, path, query, last string) (io.ReadCloser, error) {
	c := call{op: "watch", method: http.MethodGet, path: path, query: query}
	if err := e.calls.Enter(ctx, c.op); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{cancel: cancel, leave: e.calls.Leave}
	s.detach = context.AfterFunc(e.ctx, func() { cancel(context.Canceled) })
	late := time.AfterFunc(e.timeout, func() { cancel(errTimeout) })
	r := e.request(ctx, c)
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := e.client.Do(r)
	if inTime := late.Stop(); err == nil && !inTime {
		_ = resp.Body.Close()
		err = errTimeout
	}
	if err != nil {
		err = e.broken(ctx, c, err)
		_ = s.Close()
		return nil, err
	}
	s.body = resp.Body
	if resp.StatusCode == http.StatusOK {
		return s, nil
	}
	defer s.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, refusalMost))
	return nil, cmp.Or(e.refused(c, resp.StatusCode, answer), err)
}

// stream is an answer without an end of its own.
type stream struct {
	body   io.ReadCloser // nil: there is none
	cancel context.CancelCauseFunc
	detach func() bool
	leave  func()
	once   sync.Once
}

func (s *stream) Read(b []byte) (int, error) { return s.body.Read(b) }

// Close ends the stream. It may be called more than once, and during a Read.
func (s *stream) Close() error {
	s.once.Do(func() {
		s.cancel(nil)
		s.detach()
		if s.body != nil {
			_ = s.body.Close()
		}
		s.leave()
	})
	return nil
}
