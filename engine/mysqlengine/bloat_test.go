package mysqlengine

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

// lone starts a server for one engine, so that its counters count nothing else. The engine
// lists most finished messages of a queue; 0: many.
func lone(t *testing.T, most int64, settings ...string) (e *Engine, db, other *sql.DB) {
	t.Helper()
	url := mysqltest.Start(t, mysqltest.Settings(settings...)).Database()
	db, other = connect(t, url, true), connect(t, url, true)
	db.SetMaxOpenConns(10)
	db.SetMaxIdleConns(10)
	e, err := New(t.Context(), db, &Config{Migrate: true, History: engine.History{Keep: 2 * time.Hour, Max: most}})
	ok(t, err)
	t.Cleanup(func() { ok(t, e.Close()) })
	return e, db, other
}

// fill inserts messages into queue q that are due from an instant on.
func fill(t *testing.T, e *Engine, db *sql.DB, from string, n int) {
	t.Helper()
	run(t, db, "INSERT INTO tarry_queue (num, name) VALUES (1, 'q')")
	_, err := e.store.Names(t.Context(), []string{"q"}, true)
	ok(t, err)
	const digit = "(SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 " +
		"UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	const seq = "1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n"
	run(t, db, fmt.Sprintf("INSERT INTO tarry_message (id, queue, `key`, kind, grave, ends, due, attempt, priority) "+
		"SELECT 1000000000 + seq, 1, CONCAT('k', seq), 0, 0, %s + seq, %[1]s + seq, 0, 1024 FROM (SELECT %[2]s AS seq "+
		"FROM %[3]s a, %[3]s b, %[3]s c, %[3]s d, %[3]s e) s WHERE seq <= %[4]d ORDER BY seq", from, seq, digit, n))
}

// counted is the sum of some counters of a server.
func counted(t *testing.T, db *sql.DB, names ...string) (sum int64) {
	t.Helper()
	rows, err := db.Query("SHOW GLOBAL STATUS WHERE Variable_name IN ('" + strings.Join(names, "', '") + "')")
	ok(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int64
		ok(t, rows.Scan(&name, &n))
		sum += n
	}
	ok(t, rows.Err())
	return sum
}

func run(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), text)
	ok(t, err)
}

func TestCallsTouchWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	analyze := "ANALYZE TABLE tarry_message PERSISTENT FOR ALL"
	if mysqltest.IsMySQL() {
		analyze = "ANALYZE TABLE tarry_message"
	}
	for _, c := range []struct {
		name          string
		before, after string // the messages are there
	}{
		{name: "never analyzed"},
		{name: "analyzed while empty", before: analyze},
		{name: "analyzed", after: analyze},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, db, _ := lone(t, 0, "innodb_stats_auto_recalc=OFF")
			if c.before != "" {
				run(t, db, c.before)
			}
			fill(t, e, db, "(UNIX_TIMESTAMP() + 31536000) * 1000", sqltest.Far+sqltest.Past)
			run(t, db, "UPDATE tarry_message SET kind = 4, ending = 1, ends = UNIX_TIMESTAMP() * 1000 - id % 1000000, grave = -32768 * ends - id % 32768 WHERE id > 0 AND id % 2 = 0")
			run(t, db, fmt.Sprintf("INSERT INTO tarry_tally VALUES (1, 5, 0, %d)", sqltest.Past))
			if c.after != "" {
				run(t, db, c.after)
			}
			sqltest.Touches(t, e, func() int64 {
				return counted(t, db, "Handler_read_first", "Handler_read_key", "Handler_read_last", "Handler_read_next",
					"Handler_read_prev", "Handler_read_rnd", "Handler_read_rnd_next")
			})
		})
	}
}

// holdSnapshot opens a snapshot, and returns a function that closes it.
func holdSnapshot(t *testing.T, db *sql.DB) (end func()) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	ok(t, err)
	_, err = conn.ExecContext(t.Context(), "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	ok(t, err)
	return func() { rollback(conn) }
}

// holdEnds locks fences as transactions do that lease all messages of a queue: each locks the
// fence at which it stops.
func holdEnds(t *testing.T, db *sql.DB, transactions int) (end func()) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	ok(t, err)
	for _, text := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN", "SELECT id FROM tarry_message FORCE INDEX (by_end) " +
		"WHERE queue = 1 AND kind IN (0, 1) AND ends = 9223372036854775807 ORDER BY kind, id LIMIT " + fmt.Sprint(transactions) + " FOR UPDATE"} {
		_, err = conn.ExecContext(t.Context(), text)
		ok(t, err)
	}
	return func() { rollback(conn) }
}

func TestNothingWalksOverWhatHasGone(t *testing.T) {
	t.Parallel()
	e, db, other := lone(t, 10)
	defer holdSnapshot(t, other)()
	fill(t, e, db, "(UNIX_TIMESTAMP() - 3600) * 1000", sqltest.Gone)
	for range 4 { // so much that no machine walks over it in the time of a quick look
		run(t, db, "UPDATE tarry_message SET ends = ends + 1 WHERE id > 0")
	}
	run(t, db, "UPDATE tarry_message SET kind = 4 WHERE id > 0")                        // finished in the last hour
	run(t, db, "UPDATE tarry_message SET kind = 2, ends = ends + 3560000 WHERE id > 0") // leases up to a minute from now on
	run(t, db, "DELETE FROM tarry_message WHERE id > 0")
	defer holdEnds(t, other, 15)()
	sqltest.Walks(t, e, func() int64 { return counted(t, db, "Innodb_buffer_pool_read_requests") }, 8000)
}

// Whatever the statistics say, no query begins at the start of a kind, where the deleted rows
// are.
func TestLooksAreRanges(t *testing.T) {
	t.Parallel()
	e, db, other := lone(t, 0, "innodb_stats_auto_recalc=OFF")
	defer holdSnapshot(t, other)()
	const gone, far = 20_000, 9_000_000_000_000
	fill(t, e, db, fmt.Sprint(far), gone)
	run(t, db, fmt.Sprintf("DELETE FROM tarry_message WHERE id > 0 AND id < 1000000000 + %d", gone-20))
	run(t, db, "ANALYZE TABLE tarry_message")
	texts, low, high := e.store.sql, codec.Place{At: far + 1, ID: 1}, codec.Place{At: far + gone + 1}
	for from := int64(far); from < far+gone; from += 1000 {
		low.At = from
		span, places := within(&sqlengine.Range{Span: codec.Span{Low: low, High: high}})
		values := append([]any{1, 1, 0, 0}, places...)
		due, lows := within(&sqlengine.Range{Span: codec.Span{Low: low}, Due: true})
		look := codec.Place{At: from, ID: 1}
		for name, s := range map[string]*statement{
			"heads":   texts.headsFrom(&sqlengine.LowBound{Queue: 1, From: sqlengine.Places{look, look, look, look}, Forgotten: from}),
			"span":    locking(sqlengine.Skip, columns+"NULL "+texts.span+span+" ORDER BY m.queue, m.kind, m.ends, m.id LIMIT ?", append(values, 200)...),
			"due":     locking(sqlengine.Skip, columns+"NULL "+texts.span+due+" ORDER BY m.queue, m.kind, m.ends, m.id LIMIT ?", append(append([]any{1, 1, 0, 0}, lows...), 200)...),
			"holding": newStatement(texts.holding, 1, 1, from),
			"over":    newStatement(texts.over, 1, 1, from, from+gone, 1, 200),
		} {
			if name == "holding" && mysqltest.IsMySQL() {
				continue // a count would have to read each row to be a range, see heads
			}
			rows, err := db.QueryContext(t.Context(), "EXPLAIN FORMAT=TRADITIONAL "+string(s.text), s.args...)
			ok(t, err)
			columns, err := rows.Columns()
			ok(t, err)
			for rows.Next() {
				plan := make([]sql.NullString, len(columns))
				into := make([]any, len(plan))
				for i := range plan {
					into[i] = &plan[i]
				}
				ok(t, rows.Scan(into...))
				of := func(column string) string { return plan[slices.Index(columns, column)].String }
				if table, how, extra := of("table"), of("type"), of("Extra"); how == "ref" || how == "index" || how == "ALL" || strings.Contains(extra, "filesort") {
					t.Errorf("%s from %d on: %s is read by %s; %s", name, from-far, table, how, extra)
				}
			}
			ok(t, rows.Err())
		}
	}
}

// TestBloat runs by: go test ./engine/mysqlengine -run TestBloat -v -timeout 2h -bloat 1000000
func TestBloat(t *testing.T) {
	sqltest.BloatAsked(t)
	e, _, other := lone(t, 0, "innodb_flush_log_at_trx_commit=1", "innodb_flush_method=O_DIRECT", "innodb_log_file_size=96M")
	sqltest.Bloat(t, e, func() func() { return holdSnapshot(t, other) }, func() (state string) {
		ok(t, other.QueryRow("SELECT CONCAT('history ', COUNT) FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'").Scan(&state))
		return state
	})
}
