package intake

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/notify"
	"github.com/tarryhq/tarry/internal/wait"
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
		wait.For(pushes.Done(), j.drain)
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
