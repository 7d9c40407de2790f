package peer

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tarryhq/tarry/bench/scenario"
)

const (
	pollEvery = time.Second
	pollLimit = 100
)

// Polled opens what a service does that has no more than its database: a row for each message
// in MariaDB, which a poller finds by the due time.
func Polled(ctx context.Context, dsn string) (scenario.System, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	cfg.InterpolateParams = true // one round trip for each statement
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	// A connection for each client, so that none waits for another's, nor dials anew.
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(2 * scenario.Clients)
	db.SetMaxIdleConns(2 * scenario.Clients)
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS timeouts (
		id      BIGINT AUTO_INCREMENT PRIMARY KEY,
		queue   VARCHAR(64) NOT NULL,
		number  BIGINT NOT NULL,
		status  TINYINT NOT NULL DEFAULT 0,
		due     DATETIME(3) NOT NULL,
		retries INT NOT NULL DEFAULT 0,
		body    BLOB NOT NULL,
		KEY due (queue, status, due))`)
	return &polled{db: db, ids: make(map[int]int64)}, err
}

type polled struct {
	db *sql.DB

	mu  sync.Mutex
	ids map[int]int64 // of rows that were pushed singly, which are cancelled by them
}

func (s *polled) Push(ctx context.Context, queue string, i int, due time.Time) error {
	r, err := s.db.ExecContext(ctx, "INSERT INTO timeouts (queue, number, due, body) VALUES (?, ?, ?, ?)",
		queue, i, due.UTC(), scenario.Body(i))
	if err != nil {
		return err
	}
	id, err := r.LastInsertId()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[i] = id
	return err
}

func (s *polled) PushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error {
	var args []any
	for i := from; i < to; i++ {
		args = append(args, queue, i, due(i).UTC(), scenario.Body(i))
	}
	_, err := s.db.ExecContext(ctx, "INSERT INTO timeouts (queue, number, due, body) VALUES (?, ?, ?, ?)"+
		strings.Repeat(", (?, ?, ?, ?)", to-from-1), args...)
	return err
}

func (s *polled) Cancel(ctx context.Context, queue string, i int) error {
	s.mu.Lock()
	id := s.ids[i]
	s.mu.Unlock()
	r, err := s.db.ExecContext(ctx, "DELETE FROM timeouts WHERE id = ? AND queue = ? AND status = 0", id, queue)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); n != 1 || err != nil {
		return fmt.Errorf("%d rows are %s/%d: %w", n, queue, i, err)
	}
	return nil
}

// row is a row that is to be handled.
type row struct{ id, number int }

// Work looks every second, and at once again when as many were due as it takes at a time.
func (s *polled) Work(b *testing.B, queues []string, started func(i int)) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	rows := make(chan row)
	for range scenario.Clients {
		all.Go(func() {
			for r := range rows {
				started(r.number)
				if _, err := s.db.ExecContext(context.WithoutCancel(ctx), "DELETE FROM timeouts WHERE id = ?", r.id); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		defer close(rows)
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			more := false
			for _, q := range queues {
				taken, err := s.take(ctx, q)
				if err != nil && ctx.Err() == nil {
					b.Error(err)
				}
				for _, r := range taken {
					rows <- r
				}
				more = more || len(taken) == pollLimit
			}
			if more && ctx.Err() == nil {
				continue
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		all.Wait()
	}
}

// take marks rows that are due, so that nobody else takes them.
func (s *polled) take(ctx context.Context, queue string) (taken []row, err error) {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted}) // it locks no gaps
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	rows, err := tx.QueryContext(ctx, `SELECT id, number, body FROM timeouts
		WHERE queue = ? AND status = 0 AND due <= UTC_TIMESTAMP(3)
		ORDER BY due LIMIT ? FOR UPDATE SKIP LOCKED`, queue, pollLimit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []any
	for rows.Next() {
		var r row
		var body []byte
		if err := rows.Scan(&r.id, &r.number, &body); err != nil {
			return nil, err
		}
		taken, ids = append(taken, r), append(ids, r.id)
	}
	if err := rows.Err(); err != nil || len(ids) == 0 {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE timeouts SET status = 1 WHERE id IN (?"+strings.Repeat(", ?", len(ids)-1)+")", ids...); err != nil {
		return nil, err
	}
	return taken, tx.Commit()
}

func (s *polled) Empty(ctx context.Context, queue string) (empty bool, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT NOT EXISTS (SELECT * FROM timeouts WHERE queue = ?)", queue).Scan(&empty)
	return empty, err
}

func (s *polled) Count(ctx context.Context, queue string) (n int, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT count(*) FROM timeouts WHERE queue = ?", queue).Scan(&n)
	return n, err
}

func (s *polled) Close() error { return s.db.Close() }
