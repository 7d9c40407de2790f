package mysqlengine

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
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
	url := mysqltest.Shared(t)
	pool := connect(t, url, true)
	c := open(t, pool, newPrefix())
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
		ok(t, tx.Commit())
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
		ok(t, tx.Rollback())
		if has(t, c, "undone") || !has(t, c, "stays") {
			t.Fatal("something is left of it")
		}
	})
	t.Run("nor what is rolled back to a savepoint", func(t *testing.T) {
		tx := begin(t, pool)
		push(inTx(t, c, tx), "before")
		_, err := tx.ExecContext(ctx, "SAVEPOINT mine")
		ok(t, err)
		push(inTx(t, c, tx), "within")
		_, err = tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT mine")
		ok(t, err)
		ok(t, tx.Commit())
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
		ok(t, tx.Commit())
		if !has(t, c, "other") {
			t.Fatal("the transaction was lost")
		}
	})
	t.Run("after its end it says so", func(t *testing.T) {
		tx := begin(t, pool)
		in := inTx(t, c, tx)
		ok(t, tx.Commit())
		if _, err := in.Push(ctx, "orders", nil); !errors.Is(err, tarry.ErrInvalid) {
			t.Fatal(err)
		}
	})
	t.Run("of a pool that takes one statement at a time", func(t *testing.T) {
		tx := begin(t, connect(t, url, false))
		in := inTx(t, c, tx)
		push(in, "single")
		if _, err := in.Push(ctx, "orders", nil, tarry.Key("single")); !errors.Is(err, tarry.ErrExists) {
			t.Fatal(err)
		}
		ok(t, tx.Commit())
		if !has(t, c, "single") {
			t.Fatal("it is not there")
		}
	})
	t.Run("a snapshot from before the queue says so", func(t *testing.T) {
		tx, err := pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		ok(t, err)
		defer tx.Rollback()
		if has(t, inTx(t, c, tx), "nobody") {
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

// A handler that settles its message with its own work has both or neither.
func TestSettleInTx(t *testing.T) {
	t.Parallel()
	pool := connect(t, mysqltest.Shared(t), true)
	c := open(t, pool, newPrefix())
	ctx := t.Context()
	_, err := pool.ExecContext(ctx, "CREATE TABLE paid (id VARCHAR(20) PRIMARY KEY)")
	ok(t, err)
	_, err = c.Push(ctx, "orders", nil, tarry.Key("42"))
	ok(t, err)
	got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"orders"}, Max: 1})
	ok(t, err)
	if len(got.Messages) != 1 {
		t.Fatalf("%d messages are leased", len(got.Messages))
	}
	work := func(end func(*sql.Tx) error) {
		t.Helper()
		tx := begin(t, pool)
		_, err := tx.ExecContext(ctx, "INSERT INTO paid VALUES ('42')")
		ok(t, err)
		settled, err := inTx(t, c, tx).Settle(ctx, []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoAck}})
		ok(t, err)
		ok(t, settled[0].Err)
		ok(t, end(tx))
	}
	work(func(tx *sql.Tx) error { return tx.Rollback() })
	if !has(t, c, "42") {
		t.Fatal("it is gone though the work was undone")
	}
	work(func(tx *sql.Tx) error { return tx.Commit() })
	if has(t, c, "42") {
		t.Fatal("it is still there")
	}
}
