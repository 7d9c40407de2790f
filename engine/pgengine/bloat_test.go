package pgengine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// single opens a pool of one connection, whose counts at the server are complete at once.
func single(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	ok(t, err)
	cfg.MaxConns = 1
	return connectWith(t, cfg)
}

// rowsRead returns a function for the number of rows and index entries that a connection has
// read.
func rowsRead(t *testing.T, pool *pgxpool.Pool, schema string) func() int64 {
	return func() (n int64) {
		t.Helper()
		_, err := pool.Exec(t.Context(), "SELECT pg_stat_force_next_flush()")
		ok(t, err)
		ok(t, pool.QueryRow(t.Context(), `SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = $1)
			+ (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = $1 AND relname <> 'queue')`, schema).Scan(&n))
		return n
	}
}

// fill inserts messages into queue q by a query for their columns, without autovacuum.
func fill(t *testing.T, pool *pgxpool.Pool, schema, rest string, n int) {
	t.Helper()
	for _, text := range []string{
		"ALTER TABLE " + schema + ".message SET (autovacuum_enabled = false)",
		"INSERT INTO " + schema + ".queue (num, name) VALUES (1, 'q') ON CONFLICT DO NOTHING",
		fmt.Sprintf(`INSERT INTO %s.message (id, queue, key, kind, ends, due, created, attempt, priority, policy)
			SELECT 1000000000 + i, num, 'k' || i, 0, %s, %[2]s, 0, 0, 1024, '\x00' FROM %[1]s.queue, generate_series(1, %[3]d) i`, schema, rest, n),
	} {
		_, err := pool.Exec(t.Context(), text)
		ok(t, err)
	}
}

// far is a year from now on.
const far = "(extract(epoch FROM now()) * 1000)::bigint + 31536000000 + i"

func TestCallsTouchWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		before, after string // the messages are there
	}{
		{name: "never analyzed"},
		{name: "analyzed while empty", before: "ANALYZE %s.message"},
		{name: "analyzed", after: "ANALYZE %s.message"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pool := single(t, pgtest.Shared(t))
			schema := newSchema(t, pool)
			say := func(text string) {
				if text != "" {
					_, err := pool.Exec(t.Context(), fmt.Sprintf(text, schema))
					ok(t, err)
				}
			}
			say(c.before)
			fill(t, pool, schema, far, sqltest.Far+sqltest.Past)
			say("UPDATE %s.message SET kind = 4, ending = 1, ends = (extract(epoch FROM now()) * 1000)::bigint - mod(id, 1000000) WHERE mod(id, 2) = 0")
			say(fmt.Sprintf("INSERT INTO %%s.tally VALUES (1, 5, 0, %d)", sqltest.Past))
			say(c.after)
			e := newEngine(pool, &Config{Schema: schema, History: engine.History{Keep: time.Hour}}, nil)
			defer e.Close()
			rows := rowsRead(t, pool, schema)
			for range 7 { // after so many times a connection may keep a plan
				sqltest.Touches(t, e, rows)
			}
		})
	}
}

// holdSnapshot opens a snapshot, and returns a function that closes it.
func holdSnapshot(t *testing.T, pool *pgxpool.Pool) (end func()) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	ok(t, err)
	_, err = conn.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
	ok(t, err)
	return func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), "ROLLBACK")
		conn.Release()
		ok(t, err)
	}
}

func TestNothingWalksOverWhatHasGone(t *testing.T) {
	t.Parallel()
	for name, analyze := range map[string]string{"never analyzed": "", "analyzed since": "ANALYZE %s.message"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Shared(t)
			pool := single(t, url)
			schema := newSchema(t, pool)
			defer holdSnapshot(t, connect(t, url))()
			const past = "(extract(epoch FROM now()) * 1000)::bigint - 3600000 + i"
			fill(t, pool, schema, past, sqltest.Gone)
			for _, text := range []string{
				"UPDATE %s.message SET kind = 4",                        // finished in the last hour
				"UPDATE %s.message SET kind = 2, ends = ends + 3560000", // leases up to a minute from now on
				"DELETE FROM %s.message",
				analyze, // it finds an empty table, however large the file
			} {
				if text != "" {
					_, err := pool.Exec(t.Context(), fmt.Sprintf(text, schema))
					ok(t, err)
				}
			}
			e := newEngine(pool, &Config{Schema: schema, History: engine.History{Keep: 2 * time.Hour, Max: 10}}, nil)
			defer e.Close()
			sqltest.Walks(t, e, rowsRead(t, pool, schema), sqltest.Gone/20)
		})
	}
}

// TestBloat runs by: go test ./engine/pgengine -run TestBloat -v -timeout 2h -bloat 5000000
func TestBloat(t *testing.T) {
	sqltest.BloatAsked(t)
	s := pgtest.Start(t, pgtest.Settings("fsync = on"))
	url := s.Database()
	cfg, err := pgxpool.ParseConfig(url)
	ok(t, err)
	cfg.MaxConns = 10
	pool, other := connectWith(t, cfg), connect(t, url)
	schema := newSchema(t, pool)
	e := newEngine(pool, &Config{Schema: schema}, nil)
	defer e.Close()
	sqltest.Bloat(t, e, func() func() { return holdSnapshot(t, other) }, func() (state string) {
		ok(t, other.QueryRow(t.Context(), `SELECT format('%s dead rows of messages, %s of counts; table %s, indexes %s',
			(SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'message'), (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'tally_change'),
			pg_size_pretty(pg_table_size($1::regclass)), pg_size_pretty(pg_indexes_size($1::regclass)))`, schema+".message").Scan(&state))
		return state
	})
}
