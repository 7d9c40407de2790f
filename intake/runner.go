package intake

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/notify"
)

// RunnerConfig configures a Runner. The zero value and nil are valid.
type RunnerConfig struct {
	// DrainTimeout is how long the pushes of an ending intake may take. What is not pushed
	// then stays at its source. Default 30 s; negative: at once.
	DrainTimeout time.Duration

	// Logger gets changes of state, and messages that are refused. Default: slog.Default().
	Logger *slog.Logger
}

// Runner runs intakes. Make one with NewRunner, give it intakes with Set, and call Run.
//
// It is safe for concurrent use.
type Runner struct {
	c   *tarry.Client
	cfg RunnerConfig

	mu    sync.Mutex
	ctx   context.Context // of Run; nil: not yet
	ended bool
	jobs  []*job // in the order of Set
	all   sync.WaitGroup
}

// NewRunner returns a Runner that pushes with a client.
func NewRunner(c *tarry.Client, cfg *RunnerConfig) *Runner {
	r := &Runner{c: c, cfg: *cmp.Or(cfg, new(RunnerConfig))}
	r.cfg.DrainTimeout = max(0, cmp.Or(r.cfg.DrainTimeout, tarry.DefaultDrainTimeout))
	r.cfg.Logger = notify.Logger(cmp.Or(r.cfg.Logger, slog.Default()))
	return r
}

// Set replaces all intakes. It opens sources without connecting. An error names the intake,
// and then nothing has changed.
//
// Set may be called during Run. Unchanged intakes go on undisturbed. Removed ones drain, and
// changed ones drain and start anew.
func (r *Runner) Set(intakes Intakes) error {
	full, err := intakes.Complete()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return &tarry.Error{Op: "intake", Err: tarry.ErrClosed, Hint: "the runner has ended; make a new one"}
	}
	jobs := make([]*job, len(full))
	for n, i := range full {
		var old *job
		if at := slices.IndexFunc(r.jobs, func(j *job) bool { return j.in.Name == i.Name }); at >= 0 {
			old = r.jobs[at]
		}
		if old != nil && old.in.same(i) {
			jobs[n] = old
			continue
		}
		if jobs[n], err = newJob(r.c, i, &r.cfg); err != nil {
			return intakes.wrong(n, err)
		}
		if r.ctx != nil {
			jobs[n].after = old
		}
	}
	before := r.jobs
	r.jobs = jobs
	for _, j := range before {
		if !slices.Contains(jobs, j) {
			j.stop()
		}
	}
	for _, j := range jobs {
		if !slices.Contains(before, j) {
			r.start(j)
		}
	}
	return nil
}

// start runs a job if the runner runs.
func (r *Runner) start(j *job) {
	if r.ctx != nil {
		r.all.Go(func() { j.run(r.ctx) })
	}
}

// Run runs the intakes until ctx ends, then drains: it takes no more, lets pushes finish
// within DrainTimeout, and closes the sources. End Run before you close the client. A runner
// runs once.
func (r *Runner) Run(ctx context.Context) error {
	r.mu.Lock()
	if r.ctx != nil {
		r.mu.Unlock()
		return &tarry.Error{Op: "intake", Err: tarry.ErrInvalid, Hint: "a runner runs once; make a new one"}
	}
	r.ctx = ctx
	for _, j := range r.jobs {
		r.start(j)
	}
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.all.Wait()
	notify.FlushLog(r.cfg.Logger)
	return nil
}

// Status returns what the intakes do, in the order of Set.
func (r *Runner) Status() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Status, len(r.jobs))
	for n, j := range r.jobs {
		j.count(func(st *Status) { all[n] = *st })
	}
	return all
}
