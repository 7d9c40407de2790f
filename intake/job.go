package intake

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/notify"
)

// job is a running intake.
type job struct {
	in       Intake
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

	mu     sync.Mutex
	status Status
	wrong  wrong
}

func newJob(c *tarry.Client, i Intake, cfg *RunnerConfig) (*job, error) {
	i.Options.Logger = cfg.Logger.With("intake", i.Name)
	source, err := Open(i.Source, i.Options)
	if err != nil {
		return nil, err
	}
	j := &job{in: i, c: c, source: source, drain: cfg.DrainTimeout, log: i.Options.Logger,
		trouble: notify.NewTroubleLog(i.Options.Logger), done: make(chan struct{})}
	j.conflict, _ = engine.ParseConflict(i.OnConflict) // Complete has checked it
	j.life, j.stop = context.WithCancel(context.Background())
	j.status = Status{Name: i.Name, Queue: i.Queue, State: Connecting, Since: time.Now()}
	return j, nil
}

// run receives until ctx ends or the job is stopped.
func (j *job) run(ctx context.Context) {
	defer close(j.done)
	defer context.AfterFunc(ctx, j.stop)()
	if j.after != nil {
		<-j.after.done
		j.after = nil
	}
	pushes, cut := context.WithCancel(context.Background())
	defer cut()
	context.AfterFunc(j.life, func() {
		duration.Await(pushes.Done(), j.drain)
		cut()
	})
	for pause := (calls.Pause{Least: leastPause, Most: mostPause}); j.life.Err() == nil; {
		if err := j.receive(pushes, pause.Reset); err != nil {
			j.report(func(w *wrong) { *w = wrong{source: err} })
		}
		pause.Wait(j.life)
	}
	j.trouble.Flush()
}

// receive takes messages by one connection, until it is lost or the job is stopped.
func (j *job) receive(pushes context.Context, connected func()) error {
	c, _, err := j.source.Connect(j.life)
	if err != nil {
		return err
	}
	defer c.Close()
	s := &Sink{job: j, conn: c, pushes: pushes, waiting: make(chan *Message, mostHeld), held: make(map[string]bool),
		pause: calls.Pause{Least: leastPause, Most: mostPause}}
	ctx, end := context.WithCancel(j.life)
	s.ctx = ctx
	var work sync.WaitGroup
	work.Go(s.run)
	err = c.Receive(ctx, s)
	end()
	work.Wait()
	j.count(func(st *Status) { st.Unacked = 0 })
	if s.received {
		connected()
	}
	return err
}

// State says whether an intake receives.
type State string

// The states of an intake.
const (
	Connecting State = "connecting"
	Running    State = "running"
	Failing    State = "failing"
)

// Status is what an intake does, and has done since it was set or changed.
type Status struct {
	Name  string
	Queue string
	State State
	Since time.Time // of the state

	// When Failing: a code for programs, what is wrong, and what to do.
	Code, Error, Hint string

	Counts
	Unacked     int64  // taken, and not settled yet
	LastRefused string // why the last message was refused
}

// Counts count the messages of an intake.
type Counts struct {
	Taken       int64 // handed over by the source
	Pushed      int64 // of these, new or changed in the store
	Doubles     int64 // of these, found in the store already and not pushed again
	Cancelled   int64 // messages of the store that one of these cancelled
	Missed      int64 // of these, cancels that found no message or came too late
	Refused     int64 // of these, set aside at the source
	Redelivered int64 // of these, handed over before
	Doubtful    int64 // pushed again without a key after a call with an unknown outcome: perhaps twice
}

// wrong is what keeps an intake from receiving, or from passing on all. What comes first is
// told.
type wrong struct{ source, store, ack, aside error }

// report changes what is wrong, and logs a new state.
func (j *job) report(change func(*wrong)) {
	j.mu.Lock()
	before := j.status
	change(&j.wrong)
	st := &j.status
	st.State, st.Code, st.Error, st.Hint = Running, "", "", ""
	if err := cmp.Or(j.wrong.source, j.wrong.store, j.wrong.ack, j.wrong.aside); err != nil {
		t, ok := errors.AsType[*Trouble](err)
		if !ok {
			t = &Trouble{Code: CodeFailed, Err: err}
		}
		st.State, st.Code, st.Error, st.Hint = Failing, t.Code, t.Err.Error(), t.Hint
	}
	if st.State != before.State {
		st.Since = time.Now()
	}
	now := *st
	j.mu.Unlock()
	switch {
	case now.State == before.State && now.Code == before.Code:
	case now.State == Running:
		j.log.Info("the intake receives")
	default:
		j.log.Warn("the intake fails", "code", now.Code, "error", now.Error, "hint", now.Hint)
	}
}

// count changes what is counted.
func (j *job) count(change func(st *Status)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.status)
}

// storeTrouble returns the trouble of a failed push.
func storeTrouble(err error) error {
	t := &Trouble{Code: CodeStore, Err: err, Hint: "nothing is acked meanwhile; the intake tries again"}
	if e, ok := errors.AsType[*tarry.Error](err); ok && e.Hint != "" {
		t.Err, t.Hint = e.Err, e.Hint
	}
	return t
}
