package mysqlengine

import (
	"context"
	"database/sql"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

func TestBesideOthers(t *testing.T) {
	t.Parallel()
	for name, several := range map[string]bool{"several statements at once": true, "one at a time": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sqltest.Run(t, func(t *testing.T) sqltest.Bed {
				url := mysqltest.Shared(t)
				db := connect(t, url, several)
				prefix := newPrefix()
				t.Cleanup(func() { dropTables(t, db, prefix) })
				return sqltest.Bed{
					Open: func(t *testing.T, wrap func(sqlengine.Store) sqlengine.Store) engine.Whole {
						e := openOn(t, db, prefix)
						if wrap == nil {
							return e
						}
						return sqlengine.New(wrap(e.store), sqlengine.Config{Name: "mysql", MaxBody: maxBody})
					},
					Alone: func(t *testing.T) engine.Whole {
						one := connect(t, url, several)
						one.SetMaxOpenConns(1)
						return openOn(t, one, prefix)
					},
					Waits: func(t *testing.T) {
						var name string
						for waits := 0; waits == 0; { // of all stores: the server does not tell them apart
							ok(t, db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").Scan(&name, &waits))
						}
					},
					Lose: func(t *testing.T) {
						for _, text := range []string{
							"DELETE FROM {queue}", "DELETE FROM {message}", "DELETE FROM {memory}", "DELETE FROM {tally}", "DELETE FROM {tally_change}",
							"ALTER TABLE {queue} AUTO_INCREMENT = 1", "UPDATE {id_block} SET last = 0",
						} {
							_, err := db.ExecContext(t.Context(), strings.NewReplacer("{", prefix+"_", "}", "").Replace(text))
							ok(t, err)
						}
					},
					Begin: func(t *testing.T, e engine.Engine) sqltest.Transaction {
						tx := begin(t, e.(*Engine).store.db)
						in, err := InTx(sqltest.Client{E: e}, tx)
						ok(t, err)
						return sqltest.Transaction{Engine: in.E, Commit: tx.Commit}
					},
				}
			})
		})
	}
}

func openOn(t *testing.T, db *sql.DB, prefix string) *Engine {
	e, err := New(t.Context(), db, &Config{Prefix: prefix, Migrate: true, History: engine.History{Keep: time.Hour}})
	ok(t, err)
	t.Cleanup(func() { ok(t, e.Close()) })
	return e
}

// The last dead and the last finished of many messages with one key are found at once.
func TestLastEndedOfMany(t *testing.T) {
	t.Parallel()
	db := connect(t, mysqltest.Shared(t), true)
	prefix := newPrefix()
	t.Cleanup(func() { dropTables(t, db, prefix) })
	e := openOn(t, db, prefix)
	nums, err := e.store.Names(t.Context(), []string{"q"}, true)
	ok(t, err)
	last := make(map[sqlengine.Kind]engine.ID)
	for range 20 {
		for kind, do := range map[sqlengine.Kind]engine.Action{sqlengine.Dead: engine.Bury, sqlengine.Finished: engine.Ack} {
			r, err := e.Push(t.Context(), []engine.Message{{Queue: "q", Key: "k"}})
			ok(t, err)
			last[kind] = r[0].ID
			g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1, TTR: time.Minute, Remote: true}})
			ok(t, err)
			_, err = e.Settle(t.Context(), []engine.Settlement{{Token: g.Queues[0].Messages[0].Token, Do: do}})
			ok(t, err)
		}
	}
	read := func(t *tx) (n int, err error) { // rows, by this connection
		var name string
		t.read(context.Background(), newStatement("SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_next', 'Handler_read_prev')"), func(r sqlengine.Scanner) error {
			some := 0
			err := r.Scan(&name, &some)
			n += some
			return err
		})
		return n, t.send(context.Background())
	}
	ok(t, e.store.in(t.Context(), "get", func(in *tx) error {
		before, err := read(in)
		ok(t, err)
		rows, err := in.Ended(t.Context(), sqlengine.Name{Queue: nums[0], Key: "k"}, math.MinInt64, math.MinInt64)
		ok(t, err)
		got := make(map[sqlengine.Kind]engine.ID)
		for _, r := range rows {
			got[r.Kind] = r.ID
		}
		if !maps.Equal(got, last) {
			t.Errorf("got %v; want %v", got, last)
		}
		if after, err := read(in); err != nil || after-before > 5 {
			t.Errorf("%d rows were read, %v", after-before, err)
		}
		return nil
	}))
}
