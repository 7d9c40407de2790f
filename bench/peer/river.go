package peer

import (
	"context"
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

// Pace is how often River looks for jobs, at most and at least.
type Pace struct{ Cooldown, Poll time.Duration }

var (
	// RiverDefault is how often River looks as it comes.
	RiverDefault = Pace{river.FetchCooldownDefault, river.FetchPollIntervalDefault}

	// RiverTuned is as often as River's own benchmark (riverbench) looks, which is for
	// throughput.
	RiverTuned = Pace{2 * time.Millisecond, 20 * time.Millisecond}
)

// riverWorkers is how many jobs are worked at a time there, and here at either pace: with
// the default one no more than ten times as many are fetched in a second.
const riverWorkers = 2000

// riverPool is a connection for each client, so that none waits for another's, and some for
// River's services.
const riverPool = scenario.Clients + 16

type riverSystem struct {
	pace   Pace
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

// River opens River on an empty database of PostgreSQL, or on one that has it already.
func River(ctx context.Context, url string, pace Pace) (scenario.System, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = riverPool
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	client, err := migrated(ctx, pool)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &riverSystem{pace: pace, pool: pool, client: client, ids: make(map[int]int64)}, nil
}

func migrated(ctx context.Context, pool *pgxpool.Pool) (*river.Client[pgx.Tx], error) {
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	return river.NewClient(driver, &river.Config{Logger: quiet})
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
		FetchCooldown:     s.pace.Cooldown,
		FetchPollInterval: s.pace.Poll,
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

func (s *riverSystem) Count(ctx context.Context, queue string) (n int, err error) {
	err = s.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE queue = $1 AND state IN ('scheduled', 'available', 'running', 'retryable')", queue).Scan(&n)
	return n, err
}

func (s *riverSystem) Close() error {
	s.pool.Close()
	return nil
}
