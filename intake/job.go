package intake

import (
	"context"
	"log/slog"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/notify"
)

// job is a running intake.
type job struct {
	Intake
	c       *tarry.Client
	source  Source
	drain   time.Duration
	log     *slog.Logger
	trouble *notify.TroubleLog
	health  health

	after *job            // starts when this one has ended; nil: at once
	life  context.Context // ended by stop
	stop  context.CancelFunc
	done  chan struct{} // closed when run has returned
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
	j := &job{Intake: i, c: c, source: source, drain: cfg.DrainTimeout, log: i.Options.Logger,
		trouble: notify.NewTroubleLog(i.Options.Logger), done: make(chan struct{})}
	j.life, j.stop = context.WithCancel(context.Background())
	j.health.Status = Status{Name: i.Name, Queue: i.Queue, State: Connecting, Since: time.Now()}
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
	for pause := (calls.Pause{Least: leastPause, Most: mostPause}); j.life.Err() == nil; {
		s := newSession(j)
		err := j.source.Receive(j.life, s)
		j.report(func(h *health) {
			if h.receiving {
				pause.Reset()
			}
			h.receiving, h.source = false, asTrouble(err)
		})
		s.end()
		pause.Wait(j.life)
	}
	if err := j.source.Close(); err != nil {
		j.log.Warn("an intake's source does not close", "error", err)
	}
	j.trouble.Flush()
}

// report records what the source or the store says, and logs what is new.
func (j *job) report(change func(h *health)) {
	if !j.health.report(change) {
		return
	}
	switch st := j.health.status(); st.State {
	case Running:
		j.log.Info("the intake receives")
	case Failing:
		j.log.Warn("the intake fails", "code", st.Code, "error", st.Error, "hint", st.Hint)
	}
}
