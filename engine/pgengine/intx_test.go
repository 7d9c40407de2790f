package pgengine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry"
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

// has tells whether a message is there.
func has(t testing.TB, c *tarry.Client, key string) bool {
	t.Helper()
	_, err := c.Get(t.Context(), tarry.ByKey(key).Of("orders"))
	if err != nil && !errors.Is(err, tarry.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestInTx(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	c := open(t, pool, newSchema(t, pool))
	ctx := t.Context()
	push := func(c *tarry.Client, key string) {
		t.Helper()
		_, err := c.Push(ctx, "orders", nil, tarry.Key(key), tarry.In(time.Hour))
		ok(t, err)
	}

	t.Run("a push is seen after the commit", func(t *testing.T) {
		tx := begin(t, pool)
		in := inTx(t, c, tx)
		push(in, "kept")
		if !has(t, in, "kept") || has(t, c, "kept") {
			t.Fatal("it is seen by others, or not by itself")
		}
		ok(t, tx.Commit(ctx))
		if !has(t, c, "kept") {
			t.Fatal("it is not there")
		}
	})
	t.Run("what is rolled back never was", func(t *testing.T) {
		push(c, "stays")
		tx := begin(t, pool)
		in := inTx(t, c, tx)
		push(in, "undone")
		ok(t, in.Cancel(ctx, tarry.ByKey("stays").Of("orders")))
		ok(t, tx.Rollback(ctx))
		if has(t, c, "undone") || !has(t, c, "stays") {
			t.Fatal("something is left of it")
		}
	})
	t.Run("nor what is rolled back to a savepoint", func(t *testing.T) {
		tx := begin(t, pool)
		push(inTx(t, c, tx), "before")
		inner, err := tx.Begin(ctx)
		ok(t, err)
		push(inTx(t, c, inner), "within")
		ok(t, inner.Rollback(ctx))
		ok(t, tx.Commit(ctx))
		if !has(t, c, "before") || has(t, c, "within") {
			t.Fatal("a savepoint was not heeded")
		}
	})
	t.Run("a refusal leaves the transaction as it was", func(t *testing.T) {
		push(c, "taken")
		tx := begin(t, pool)
		in := inTx(t, c, tx)
		if _, err := in.Push(ctx, "orders", nil, tarry.Key("taken")); !errors.Is(err, tarry.ErrExists) {
			t.Fatal(err)
		}
		push(in, "other")
		ok(t, tx.Commit(ctx))
		if !has(t, c, "other") {
			t.Fatal("the transaction was lost")
		}
	})
	t.Run("after its end it says so", func(t *testing.T) {
		tx := begin(t, pool)
		in := inTx(t, c, tx)
		ok(t, tx.Commit(ctx))
		if _, err := in.Push(ctx, "orders", nil); !errors.Is(err, tarry.ErrInvalid) {
			t.Fatal(err)
		}
	})
}

// Workers of this process and of another are woken by the commit, sooner than they would
// look by themselves.
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

// A handler that settles its message with its own work has both or neither.
func TestSettleInTx(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	c := open(t, pool, newSchema(t, pool))
	ctx := t.Context()
	_, err := pool.Exec(ctx, "CREATE TABLE paid (id text PRIMARY KEY)")
	ok(t, err)
	_, err = c.Push(ctx, "orders", nil, tarry.Key("42"))
	ok(t, err)
	got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"orders"}, Max: 1})
	ok(t, err)
	if len(got.Messages) != 1 {
		t.Fatalf("%d messages are leased", len(got.Messages))
	}
	work := func(end func(pgx.Tx) error) {
		t.Helper()
		tx := begin(t, pool)
		_, err := tx.Exec(ctx, "INSERT INTO paid VALUES ('42')")
		ok(t, err)
		settled, err := inTx(t, c, tx).Settle(ctx, []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoAck}})
		ok(t, err)
		ok(t, settled[0].Err)
		ok(t, end(tx))
	}
	work(func(tx pgx.Tx) error { return tx.Rollback(ctx) })
	if !has(t, c, "42") {
		t.Fatal("it is gone though the work was undone")
	}
	work(func(tx pgx.Tx) error { return tx.Commit(ctx) })
	if has(t, c, "42") {
		t.Fatal("it is still there")
	}
}
