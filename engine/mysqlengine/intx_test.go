package mysqlengine

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

// open makes a client of a store.
func open(t testing.TB, db *sql.DB, prefix string) *tarry.Client {
	t.Helper()
	e, err := New(t.Context(), db, &Config{Prefix: prefix, Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	c := tarry.New(e, nil)
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func begin(t testing.TB, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func inTx(t testing.TB, c *tarry.Client, tx *sql.Tx) *tarry.Client {
	t.Helper()
	in, err := InTx(c, tx)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// callers returns a store for the tests of both databases.
func callers(db *sql.DB, c *tarry.Client) sqltest.Callers {
	exec := func(t *testing.T, by interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
	}, text string) {
		_, err := by.ExecContext(t.Context(), text)
		ok(t, err)
	}
	return sqltest.Callers{
		Client: c,
		Exec:   func(t *testing.T, text string) { exec(t, db, text) },
		Count: func(t *testing.T, query string) (n int) {
			ok(t, db.QueryRowContext(t.Context(), query).Scan(&n))
			return n
		},
		Begin: func(t *testing.T) *sqltest.CallersTx {
			tx := begin(t, db)
			return &sqltest.CallersTx{
				InTx: func(t *testing.T) *tarry.Client { return inTx(t, c, tx) },
				Exec: func(t *testing.T, text string) { exec(t, tx, text) },
				Savepoint: func(t *testing.T) (*tarry.Client, func() error) {
					exec(t, tx, "SAVEPOINT mine")
					return inTx(t, c, tx), func() error {
						_, err := tx.ExecContext(t.Context(), "ROLLBACK TO SAVEPOINT mine")
						return err
					}
				},
				Commit:   tx.Commit,
				Rollback: tx.Rollback,
			}
		},
	}
}

func TestInTx(t *testing.T) {
	t.Parallel()
	url := mysqltest.Shared(t)
	pool := connect(t, url, true)
	c := open(t, pool, newPrefix())
	ctx := t.Context()
	push := func(c *tarry.Client, key string) {
		t.Helper()
		_, err := c.Push(ctx, "orders", nil, tarry.Key(key), tarry.In(time.Hour))
		ok(t, err)
	}
	sqltest.InTx(t, callers(pool, c))
	t.Run("of a pool that takes one statement at a time", func(t *testing.T) {
		tx := begin(t, connect(t, url, false))
		in := inTx(t, c, tx)
		push(in, "single")
		if _, err := in.Push(ctx, "orders", nil, tarry.Key("single")); !errors.Is(err, tarry.ErrExists) {
			t.Fatal(err)
		}
		ok(t, tx.Commit())
		if !sqltest.Has(t, c, "single") {
			t.Fatal("it is not there")
		}
	})
	t.Run("a snapshot from before the queue says so", func(t *testing.T) {
		tx, err := pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		ok(t, err)
		defer tx.Rollback()
		if sqltest.Has(t, inTx(t, c, tx), "nobody") {
			t.Fatal("it is there")
		}
		if _, err := inTx(t, c, tx).Push(ctx, "new", nil); !errors.Is(err, tarry.ErrInvalid) {
			t.Fatal(err)
		}
	})
	t.Run("a deadlock undoes it all, and says so", func(t *testing.T) {
		push(c, "one")
		push(c, "two")
		a, b := begin(t, pool), begin(t, pool)
		ok(t, inTx(t, c, a).Cancel(ctx, tarry.ByKey("one").Of("orders")))
		ok(t, inTx(t, c, b).Cancel(ctx, tarry.ByKey("two").Of("orders")))
		other := make(chan error, 1)
		inB := inTx(t, c, b)
		go func() { other <- inB.Cancel(ctx, tarry.ByKey("one").Of("orders")) }()
		err := inTx(t, c, a).Cancel(ctx, tarry.ByKey("two").Of("orders"))
		if err == nil {
			ok(t, a.Commit())
			err = <-other
		} else {
			ok(t, a.Rollback())
			ok(t, <-other)
		}
		if !errors.Is(err, tarry.ErrUnavailable) {
			t.Fatal(err)
		}
	})
}

func TestSettleInTx(t *testing.T) {
	t.Parallel()
	db := connect(t, mysqltest.Shared(t), true)
	sqltest.SettleInTx(t, callers(db, open(t, db, newPrefix())))
}

func TestKilledInTx(t *testing.T) {
	t.Parallel()
	sqltest.Killed(t, func() string { return mysqltest.Shared(t) }, func(t *testing.T, url string) sqltest.Callers {
		db := connect(t, url, true)
		return callers(db, open(t, db, DefaultPrefix))
	})
}
