package intake

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/notify"
)

// job is a running intake.
type job struct {
	Intake
	c        *tarry.Client
	source   Source
	conflict tarry.Conflict
	drain    time.Duration
	log      *slog.Logger
	trouble  *notify.TroubleLog

	after *job            // starts when this one has ended; nil: at once
	life  context.Context // ended by stop
	stop  context.CancelFunc
	done  chan struct{} // closed when run has returned

	counters *counters // those of the intake with this name before, if any
	health   health
	session  atomic.Pointer[session] // the current one
}

// The pauses between two attempts to receive, or to push to a store that fails.
const (
	leastPause = 100 * time.Millisecond
	mostPause  = 10 * time.Second
)

var refusal = notify.Trouble{Text: "messages were refused and set aside at their source", Level: slog.LevelWarn}

func newJob(c *tarry.Client, i Intake, cfg *RunnerConfig) (*job, error) {
	i.Options.Logger = cfg.Logger.With("intake", i.Name)
	source, err := Open(i.Source, i.Options)
	if err != nil {
		return nil, err
	}
	j := &job{Intake: i, c: c, source: source, conflict: i.conflict(), drain: cfg.DrainTimeout, log: i.Options.Logger,
		trouble: notify.NewTroubleLog(i.Options.Logger), done: make(chan struct{}), counters: new(counters)}
	j.life, j.stop = context.WithCancel(context.Background())
	j.health.set(func() {})
	return j, nil
}

// run receives until ctx ends or the job is stopped.
func (j *job) run(ctx context.Context) {
	defer close(j.done)
	defer context.AfterFunc(ctx, j.stop)()
	ctx = j.life
	if j.after != nil {
		<-j.after.done
		j.after = nil
	}
	for pause := (calls.Pause{Least: leastPause, Most: mostPause}); ctx.Err() == nil; {
		s := newSession(j)
		j.session.Store(s)
		err := j.source.Receive(ctx, s)
		if j.ended(err) {
			pause.Reset()
		}
		s.end()
		pause.Wait(ctx)
	}
	if err := j.source.Close(); err != nil {
		j.log.Warn("an intake's source does not close", "error", err)
	}
	j.trouble.Flush()
}

// report records what the source or the store says, and logs what is new.
func (j *job) report(change func(h *health)) {
	if !j.health.set(func() { change(&j.health) }) {
		return
	}
	st := j.status()
	switch st.State {
	case Running:
		j.log.Info("the intake receives")
	case Failing:
		j.log.Warn("the intake fails", "code", st.Code, "error", st.Error, "hint", st.Hint)
	}
}

// ended records that Receive has returned, and returns whether it had received.
func (j *job) ended(err error) (received bool) {
	j.report(func(h *health) {
		received = h.receiving
		h.receiving, h.source = false, asTrouble(err)
	})
	return received
}

func (j *job) status() Status {
	st := Status{Name: j.Name, Queue: j.Queue, Counts: j.counters.counts()}
	if s := j.session.Load(); s != nil {
		st.Unacked = s.unacked.Load()
	}
	h := &j.health
	h.mu.Lock()
	defer h.mu.Unlock()
	st.State, st.Since, st.LastRefused = h.state, h.since, h.refused
	if t := h.trouble(); t != nil {
		st.Code, st.Error, st.Hint = t.Code, t.Err.Error(), t.Hint
	}
	return st
}
