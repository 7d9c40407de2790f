package server

import (
	"context"
	"net/http"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// The bounds on redrives and drops by filter.
const (
	maxSweeps  = 8               // under way at a time
	sweepGrace = 3 * time.Second // for the chunk under way when the client leaves; less than lastGrace
	countStep  = 500             // messages that a dry run reads between two lines
)

// Why a sweep stops or does not start.
var (
	errClientGone error = refusal(http.StatusServiceUnavailable, "unavailable", "the client has gone", "")
	errShutdown   error = refusal(http.StatusServiceUnavailable, "unavailable", "the server shuts down", "")
	errBusy       error = refusal(http.StatusServiceUnavailable, "unavailable", "too many redrives and drops are under way",
		"try again when one of the others has ended")
)

// sweeping is a redrive or drop of dead messages under way.
type sweeping struct {
	s       *Server
	x       *exchange
	r       *http.Request
	lines   bool // the answer has a line for each chunk
	started bool // the first line was written
	swept   wire.Swept
	stop    context.CancelCauseFunc
}

// sweep runs the change on the dead messages that the request selects, or counts them.
func (s *Server) sweep(x *exchange, r *http.Request, q *wire.Sweep, run func(context.Context, tarry.Filter, ...func(tarry.Swept)) (tarry.Swept, error)) error {
	x.noteFilter(q)
	select {
	case s.sweeps <- struct{}{}:
		defer func() { <-s.sweeps }()
	default:
		return errBusy
	}
	w := &sweeping{s: s, x: x, r: r, lines: wantsLines(r)}
	w.swept.Seen = new(int64)
	if w.lines {
		w.swept.Done = new(bool)
	}
	ctx, end := w.chunkContext()
	defer end()
	if q.DryRun {
		run = w.count
	}
	f := filter(x.path.Queue(), q)
	found, err := w.setEnd(ctx, &f)
	if found {
		var n tarry.Swept
		n, err = run(ctx, f, w.progress)
		w.record(n)
	}
	if why := context.Cause(ctx); err != nil && why != nil {
		err = why
	}
	x.note("count", w.swept.Count)
	x.note("skipped", w.swept.Skipped)
	if !q.DryRun {
		err = x.midway(w.swept.Count, err, "%d are done already; ask again for the rest")
	}
	return w.answer(err)
}

// chunkContext returns the context for the chunks. It outlasts the request's by sweepGrace, so
// that the chunk under way is finished and counted.
func (w *sweeping) chunkContext() (ctx context.Context, end func()) {
	ctx, w.stop = context.WithCancelCause(context.WithoutCancel(w.r.Context()))
	unwatch := context.AfterFunc(w.r.Context(), func() {
		if duration.Sleep(ctx, sweepGrace) {
			w.stop(errClientGone)
		}
	})
	return ctx, func() {
		unwatch()
		w.stop(nil)
	}
}

// setEnd ends a filter after the message that died last. So messages that die later are left
// alone, and a client can give the same end again. It reports whether the filter has any
// message.
func (w *sweeping) setEnd(ctx context.Context, f *tarry.Filter) (found bool, err error) {
	if !w.s.c.Capabilities().Range {
		return true, nil
	}
	last := tarry.Filter{Queue: f.Queue, States: f.States, From: f.From, To: f.To, Newest: true, Limit: 1}
	for m, err := range w.s.c.ListWhere(ctx, last) {
		if err != nil {
			return false, err
		}
		f.To = m.Died.Add(time.Millisecond)
		w.swept.To, found = f.To, true
	}
	return found, nil
}

// count counts the messages of a filter. It selects them as RedriveWhere would.
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

func (w *sweeping) record(n tarry.Swept) {
	w.swept.Count, w.swept.Skipped, *w.swept.Seen = n.Done, n.Skipped, n.Seen
}

// progress is called after each chunk. It reports progress, and stops the sweep if no further
// chunk may begin.
func (w *sweeping) progress(n tarry.Swept) {
	w.record(n)
	w.s.live.touch(w.x.path.Queue())
	if w.lines && w.line() != nil {
		w.stop(errClientGone)
	} else if err := w.mayContinue(); err != nil {
		w.stop(err)
	}
}

// mayContinue returns why no further chunk may begin; nil: one may.
func (w *sweeping) mayContinue() error {
	if w.r.Context().Err() != nil {
		return errClientGone
	}
	if stopping(w.r.Context()).Err() != nil {
		return errShutdown
	}
	return w.x.recheck(access.Operate, w.x.path.Queue())
}

// line writes a line with the progress so far.
func (w *sweeping) line() error {
	if !w.started {
		w.started = true
		h := w.x.Header()
		h.Set("Content-Type", linesType)
		h.Set("X-Accel-Buffering", "no") // makes proxies pass each line on at once
		w.x.WriteHeader(http.StatusOK)
	}
	a := newAnswer()
	defer a.free()
	a.b = append(wire.Redriven.Append(a.b, &w.swept), '\n')
	if _, err := w.x.Write(a.b); err != nil {
		return err
	}
	return flush(w.x.ResponseWriter)
}

// answer answers with the result.
func (w *sweeping) answer(err error) error {
	switch {
	case err != nil && !w.started:
		return err
	case err == nil && !w.lines:
		return respond(w.x, wire.Redriven, &w.swept)
	}
	if err == nil {
		*w.swept.Done = true
	} else {
		w.swept.Failed, w.x.failed = err, true
		w.s.log(w.r, wire.Shown(err), err)
	}
	_ = w.line() // on an error the client is gone
	return err
}
