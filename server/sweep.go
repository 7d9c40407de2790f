package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// The bounds of going through dead messages.
const (
	maxSweeps  = 8               // at a time
	sweepGrace = 3 * time.Second // for the chunk under way when the client has gone; less than lastGrace
	countStep  = 500             // messages of a dry run between two lines
)

// Why no further chunk is begun.
var (
	errLeft  error = refusal(http.StatusServiceUnavailable, "unavailable", "the client has gone", "")
	errStops error = refusal(http.StatusServiceUnavailable, "unavailable", "the server shuts down", "")
	errBusy  error = refusal(http.StatusServiceUnavailable, "unavailable", "too many redrives and drops are under way",
		"try again when one of the others has ended")
)

// sweeping is a request on its way through the dead messages of a queue.
type sweeping struct {
	s     *Server
	x     *exchange
	r     *http.Request
	lines bool // the answer is a line after each chunk,
	begun bool // the first of which was written
	told  wire.Swept
	stop  context.CancelCauseFunc
}

// sweep has run change what a request chooses of the dead messages, or counts that.
func (s *Server) sweep(x *exchange, r *http.Request, q *wire.Sweep, run func(context.Context, tarry.Filter, ...func(tarry.Swept)) (tarry.Swept, error)) error {
	x.noteFilter(q)
	select {
	case s.sweeps <- struct{}{}:
		defer func() { <-s.sweeps }()
	default:
		return errBusy
	}
	w := &sweeping{s: s, x: x, r: r, lines: wantsLines(r)}
	ctx, end := w.whole()
	defer end()
	if q.DryRun {
		run = w.count
	}
	f := filter(x.path.Queue(), q)
	some, err := w.bound(ctx, &f)
	if some {
		var n tarry.Swept
		n, err = run(ctx, f, w.progress)
		w.took(n)
	}
	if why := context.Cause(ctx); err != nil && why != nil {
		err = why
	}
	x.note("count", w.told.Count)
	x.note("skipped", w.told.Skipped)
	if !q.DryRun {
		err = x.midway(w.told.Count, err, "%d are done already; ask again for the rest")
	}
	return w.answer(err)
}

// whole returns the context of the chunks. It does not end with the request's, so that a
// chunk is done whole and counted, unless the store then takes longer than sweepGrace.
func (w *sweeping) whole() (ctx context.Context, end func()) {
	ctx, w.stop = context.WithCancelCause(context.WithoutCancel(w.r.Context()))
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-w.r.Context().Done():
		case <-ctx.Done():
			return
		}
		grace := time.NewTimer(sweepGrace)
		defer grace.Stop()
		select {
		case <-grace.C:
			w.stop(errLeft)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		w.stop(nil)
		watch.Wait()
	}
}

// bound has a filter end after the message that died last: what dies from now on is left
// alone, and a client can give the same bound again. It reports whether there is something.
func (w *sweeping) bound(ctx context.Context, f *tarry.Filter) (some bool, err error) {
	if !w.s.c.Capabilities().Range {
		return true, nil
	}
	q := tarry.ListQuery{Queue: f.Queue, State: tarry.Dead, From: f.From, To: f.To, Newest: true, Limit: 1}
	for {
		page, err := w.s.c.ListPage(ctx, q)
		if err != nil {
			return false, err
		}
		if len(page.Messages) > 0 {
			f.To = page.Messages[0].Died.Add(time.Millisecond)
			w.told.To = f.To
			return true, nil
		}
		if q.After = page.Next; q.After == "" {
			return false, nil
		}
	}
}

// count counts what a filter chooses, as RedriveWhere changes it.
func (w *sweeping) count(ctx context.Context, f tarry.Filter, progress ...func(tarry.Swept)) (n tarry.Swept, err error) {
	match := f.Match
	f.Match = func(m *tarry.Info) bool {
		if n.Seen++; n.Seen%countStep == 0 {
			progress[0](n)
		}
		return match == nil || match(m)
	}
	for _, err := range w.s.c.ListWhere(ctx, f) {
		if err != nil {
			return n, err
		}
		n.Done++
	}
	return n, nil
}

func (w *sweeping) took(n tarry.Swept) {
	w.told.Count, w.told.Skipped, w.told.Seen = n.Done, n.Skipped, n.Seen
}

// progress is called after each chunk. It tells of it, and has no other begun when there
// is a reason.
func (w *sweeping) progress(n tarry.Swept) {
	w.took(n)
	w.s.live.touch(w.x.path.Queue())
	if w.lines && w.line() != nil {
		w.stop(errLeft)
	} else if err := w.barred(); err != nil {
		w.stop(err)
	}
}

// barred is why no further chunk is begun; nil: there is no reason.
func (w *sweeping) barred() error {
	if w.r.Context().Err() != nil {
		return errLeft
	}
	if server := stopping(w.r.Context()); server != nil && server.Err() != nil {
		return errStops
	}
	if w.x.token == nil {
		return nil
	}
	now := w.s.cfg.Guard.Still(w.x.token)
	if now == nil {
		return unauthorized(&access.Failed{Reason: "the token " + w.x.token.Name + " was revoked or has expired"})
	}
	w.x.token = now
	return w.x.may(access.Operate, w.x.path.Queue())
}

// line writes how far it has come.
func (w *sweeping) line() error {
	if !w.begun {
		w.begun = true
		h := w.x.Header()
		h.Set("Content-Type", linesType)
		h.Set("X-Accel-Buffering", "no") // proxies pass each line on at once
		w.x.WriteHeader(http.StatusOK)
	}
	a := newAnswer()
	defer a.free()
	a.b = append(wire.AppendSwept(a.b, &w.told, true), '\n')
	if _, err := w.x.Write(a.b); err != nil {
		return err
	}
	if err := http.NewResponseController(w.x.ResponseWriter).Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// answer tells how it ended.
func (w *sweeping) answer(err error) error {
	switch {
	case err != nil && !w.begun:
		return err
	case err == nil && !w.lines:
		return w.s.answer(w.x, func(b []byte) []byte { return wire.AppendSwept(b, &w.told, false) })
	}
	if err == nil {
		w.told.Done = true
	} else {
		w.told.Failed, w.x.failed = wire.Shown(err), true
		w.s.log(w.r, w.told.Failed, err)
	}
	_ = w.line() // on an error the client is gone
	return err
}
