package pgengine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// open makes a store and a client of it.
func open(t testing.TB, pool *pgxpool.Pool, schema string) *tarry.Client {
	t.Helper()
	e := newEngine(pool, &Config{Schema: schema}, nil)
	c := tarry.New(e, nil)
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func begin(t testing.TB, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func inTx(t testing.TB, c *tarry.Client, tx pgx.Tx) *tarry.Client {
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

// callers is a store for the tests of both databases.
func callers(pool *pgxpool.Pool, c *tarry.Client) sqltest.Callers {
	return sqltest.Callers{
		Client: c,
		Exec: func(t *testing.T, text string) {
			_, err := pool.Exec(t.Context(), text)
			ok(t, err)
		},
		Count: func(t *testing.T, query string) (n int) {
			ok(t, pool.QueryRow(t.Context(), query).Scan(&n))
			return n
		},
		Begin: func(t *testing.T) *sqltest.CallersTx {
			tx := begin(t, pool)
			return &sqltest.CallersTx{
				InTx: func(t *testing.T) *tarry.Client { return inTx(t, c, tx) },
				Exec: func(t *testing.T, text string) {
					_, err := tx.Exec(t.Context(), text)
					ok(t, err)
				},
				Savepoint: func(t *testing.T) (*tarry.Client, func() error) {
					inner, err := tx.Begin(t.Context())
					ok(t, err)
					return inTx(t, c, inner), func() error { return inner.Rollback(t.Context()) }
				},
				Commit:   func() error { return tx.Commit(t.Context()) },
				Rollback: func() error { return tx.Rollback(t.Context()) },
			}
		},
	}
}

func TestInTx(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	sqltest.InTx(t, callers(pool, open(t, pool, newSchema(t, pool))))
}

func TestSettleInTx(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	sqltest.SettleInTx(t, callers(pool, open(t, pool, newSchema(t, pool))))
}

func TestKilledInTx(t *testing.T) {
	t.Parallel()
	sqltest.Killed(t, func() string { return pgtest.Shared(t) }, func(t *testing.T, url string) sqltest.Callers {
		pool := connect(t, url)
		ok(t, Migrate(t.Context(), pool, ""))
		return callers(pool, open(t, pool, ""))
	})
}

// A commit wakes workers of this and of another process, before they would look by themselves.
func TestCommitWakes(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	c, other := open(t, pool, schema), open(t, pool, schema)
	ctx := t.Context()
	for _, waiter := range []*tarry.Client{c, other} {
		leased := make(chan error, 1)
		started := make(chan struct{})
		go func() {
			close(started)
			got, err := waiter.Lease(ctx, tarry.LeaseRequest{Queues: []string{"orders"}, Max: 1, Wait: time.Minute})
			if err == nil && len(got.Messages) == 1 {
				_, err = waiter.Settle(ctx, []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoAck}})
			}
			leased <- err
		}()
		<-started
		tx := begin(t, pool)
		_, err := inTx(t, c, tx).Push(ctx, "orders", []byte("now"))
		ok(t, err)
		select {
		case <-leased:
			t.Fatal("somebody got it before the commit")
		default:
		}
		ok(t, tx.Commit(ctx))
		select {
		case err := <-leased:
			ok(t, err)
		case <-ctx.Done():
			t.Fatal("nobody was woken")
		}
	}
}
