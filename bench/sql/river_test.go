package sql

import (
	"context"
	"flag"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/tarryhq/tarry/bench/scenario"
)

var (
	riverAsItComes = riverAt("river", river.FetchCooldownDefault, river.FetchPollIntervalDefault)

	// riverTuned looks for jobs as often as River's own benchmark (riverbench) does, which
	// is for throughput.
	riverTuned = riverAt("river-tuned", 2*time.Millisecond, 20*time.Millisecond)
)

// riverWorkers is how many jobs are worked at a time there, and here at either pace: with
// the default one no more than ten times as many are fetched in a second.
const riverWorkers = 2000

// riverPool is by default a connection for each client, so that none waits for another's,
// and some for River's services.
var riverPool = flag.Int("river-pool", scenario.Clients+16, "connections of River")

type riverSystem struct {
	pace   pace
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx] // that inserts and cancels

	mu  sync.Mutex
	ids map[int]int64 // of jobs, which River cancels by them alone
}

// riverArgs is the job. It has no unique key, which costs River more.
type riverArgs struct {
	I    int    `json:"i"`
	Body string `json:"body"`
}

func (riverArgs) Kind() string { return "bench" }

// pace is how often River looks for jobs, at most and at least.
type pace struct{ cooldown, poll time.Duration }

func riverAt(name string, cooldown, poll time.Duration) system {
	return system{name, func(b *testing.B, url string) (scenario.System, error) {
		cfg, err := pgxpool.ParseConfig(url)
		if err != nil {
			return nil, err
		}
		cfg.MaxConns = int32(*riverPool)
		pool, err := pgxpool.NewWithConfig(b.Context(), cfg)
		if err != nil {
			return nil, err
		}
		b.Cleanup(pool.Close) // also after a failure below
		driver := riverpgxv5.New(pool)
		migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
		if err != nil {
			return nil, err
		}
		if _, err := migrator.Migrate(b.Context(), rivermigrate.DirectionUp, nil); err != nil {
			return nil, err
		}
		client, err := river.NewClient(driver, &river.Config{Logger: quiet})
		return &riverSystem{pace: pace{cooldown, poll}, pool: pool, client: client, ids: make(map[int]int64)}, err
	}}
}

var quiet = slog.New(slog.DiscardHandler)

func (s *riverSystem) Push(ctx context.Context, queue string, i int, due time.Time) error {
	job, err := s.client.Insert(ctx, riverArgs{i, string(scenario.Body(i))}, &river.InsertOpts{Queue: queue, ScheduledAt: due})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[i] = job.Job.ID
	return nil
}

func (s *riverSystem) PushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error {
	jobs := make([]river.InsertManyParams, 0, to-from)
	for i := from; i < to; i++ {
		jobs = append(jobs, river.InsertManyParams{
			Args:       riverArgs{i, string(scenario.Body(i))},
			InsertOpts: &river.InsertOpts{Queue: queue, ScheduledAt: due(i)},
		})
	}
	_, err := s.client.InsertManyFast(ctx, jobs)
	return err
}

// Filled reads the ids of the jobs, which InsertManyFast does not tell.
func (s *riverSystem) Filled(ctx context.Context, queue string) error {
	rows, err := s.pool.Query(ctx, "SELECT (args->>'i')::int, id FROM river_job WHERE queue = $1", queue)
	if err != nil {
		return err
	}
	var i int
	var id int64
	clear(s.ids)
	_, err = pgx.ForEachRow(rows, []any{&i, &id}, func() error { s.ids[i] = id; return nil })
	return err
}

func (s *riverSystem) Cancel(ctx context.Context, _ string, i int) error {
	s.mu.Lock()
	id := s.ids[i]
	s.mu.Unlock()
	_, err := s.client.JobCancel(ctx, id)
	return err
}

// riverWorker handles jobs.
type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	started func(i int)
}

func (w *riverWorker) Work(_ context.Context, job *river.Job[riverArgs]) error {
	w.started(job.Args.I)
	return nil
}

func (s *riverSystem) Work(b *testing.B, queues []string, started func(i int)) (stop func()) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{started: started})
	cfg := &river.Config{
		FetchCooldown:     s.pace.cooldown,
		FetchPollInterval: s.pace.poll,
		Queues:            make(map[string]river.QueueConfig),
		Workers:           workers,
		Logger:            quiet,
	}
	for _, q := range queues {
		cfg.Queues[q] = river.QueueConfig{MaxWorkers: riverWorkers}
	}
	client, err := river.NewClient(riverpgxv5.New(s.pool), cfg)
	scenario.Must(b, err)
	scenario.Must(b, client.Start(b.Context()))
	return func() { scenario.Must(b, client.Stop(context.Background())) }
}

// Empty looks by an index for one that is left, so as not to disturb.
func (s *riverSystem) Empty(ctx context.Context, queue string) (empty bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM river_job
		WHERE queue = $1 AND state IN ('scheduled', 'available', 'running', 'retryable'))`, queue).Scan(&empty)
	return empty, err
}

func (s *riverSystem) Close() error { return nil } // its pool ends with the benchmark
