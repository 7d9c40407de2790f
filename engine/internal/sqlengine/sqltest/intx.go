package sqltest

import (
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// Callers is a client's store in a database in which callers have transactions.
type Callers struct {
	Client *tarry.Client
	Exec   func(t *testing.T, text string) // outside of a transaction
	Count  func(t *testing.T, query string) int
	Begin  func(t *testing.T) *CallersTx // rolled back with the test, unless it has ended
}

// CallersTx is a caller's transaction.
type CallersTx struct {
	// InTx returns the client of the transaction.
	InTx func(t *testing.T) *tarry.Client
	Exec func(t *testing.T, text string)
	// Savepoint sets a savepoint. It returns a client, and a function that rolls back to it.
	Savepoint        func(t *testing.T) (in *tarry.Client, undo func() error)
	Commit, Rollback func() error
}

// pushOrder pushes a message that is due in an hour.
func pushOrder(t *testing.T, c *tarry.Client, key string) {
	t.Helper()
	_, err := c.Push(t.Context(), "orders", nil, tarry.Key(key), tarry.In(time.Hour))
	ok(t, err)
}

// Has reports whether a message exists.
func Has(t testing.TB, c *tarry.Client, key string) bool {
	t.Helper()
	_, err := c.Get(t.Context(), tarry.ByKey(key).Of("orders"))
	if err != nil && !errors.Is(err, tarry.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// InTx tests calls in a caller's transaction.
func InTx(t *testing.T, s Callers) {
	c, ctx := s.Client, t.Context()
	t.Run("a push is seen after the commit", func(t *testing.T) {
		tx := s.Begin(t)
		in := tx.InTx(t)
		pushOrder(t, in, "kept")
		if !Has(t, in, "kept") || Has(t, c, "kept") {
			t.Fatal("it is seen by others, or not by itself")
		}
		ok(t, tx.Commit())
		if !Has(t, c, "kept") {
			t.Fatal("it is not there")
		}
	})
	t.Run("what is rolled back never was", func(t *testing.T) {
		pushOrder(t, c, "stays")
		tx := s.Begin(t)
		in := tx.InTx(t)
		pushOrder(t, in, "undone")
		ok(t, in.Cancel(ctx, tarry.ByKey("stays").Of("orders")))
		ok(t, tx.Rollback())
		if Has(t, c, "undone") || !Has(t, c, "stays") {
			t.Fatal("something is left of it")
		}
	})
	t.Run("nor what is rolled back to a savepoint", func(t *testing.T) {
		tx := s.Begin(t)
		pushOrder(t, tx.InTx(t), "before")
		in, undo := tx.Savepoint(t)
		pushOrder(t, in, "within")
		ok(t, undo())
		ok(t, tx.Commit())
		if !Has(t, c, "before") || Has(t, c, "within") {
			t.Fatal("a savepoint was not heeded")
		}
	})
	t.Run("a refusal leaves the transaction as it was", func(t *testing.T) {
		pushOrder(t, c, "taken")
		tx := s.Begin(t)
		in := tx.InTx(t)
		if _, err := in.Push(ctx, "orders", nil, tarry.Key("taken")); !errors.Is(err, tarry.ErrExists) {
			t.Fatal(err)
		}
		pushOrder(t, in, "other")
		ok(t, tx.Commit())
		if !Has(t, c, "other") {
			t.Fatal("the transaction was lost")
		}
	})
	t.Run("the holder of a lease replaces its message, or does not", func(t *testing.T) {
		_, err := c.Push(ctx, "orders", []byte("first"), tarry.Key("steps"))
		ok(t, err)
		got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"orders"}, Max: 1})
		ok(t, err)
		replace := func() *CallersTx {
			t.Helper()
			tx := s.Begin(t)
			_, err := tx.InTx(t).Push(ctx, "orders", []byte("second"), tarry.Key("steps"), tarry.In(time.Hour), tarry.ReplaceLeased(got.Messages[0].Token))
			ok(t, err)
			return tx
		}
		is := func(body string, state tarry.State) {
			t.Helper()
			if i, err := c.Get(ctx, tarry.ByKey("steps").Of("orders")); err != nil || string(i.Body) != body || i.State != state {
				t.Fatalf("%q is %v, %v; want %q, %v", i.Body, i.State, err, body, state)
			}
		}
		ok(t, replace().Rollback())
		is("first", tarry.Leased)
		ok(t, replace().Commit())
		is("second", tarry.Scheduled)
	})
	t.Run("after its end it says so", func(t *testing.T) {
		tx := s.Begin(t)
		in := tx.InTx(t)
		ok(t, tx.Commit())
		if _, err := in.Push(ctx, "orders", nil); !errors.Is(err, tarry.ErrInvalid) {
			t.Fatal(err)
		}
	})
}

// SettleInTx tests that a handler which acks in its own transaction gets both or neither.
func SettleInTx(t *testing.T, s Callers) {
	c, ctx := s.Client, t.Context()
	s.Exec(t, "CREATE TABLE paid (id VARCHAR(20) PRIMARY KEY)")
	_, err := c.Push(ctx, "orders", nil, tarry.Key("42"))
	ok(t, err)
	got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"orders"}, Max: 1})
	ok(t, err)
	if len(got.Messages) != 1 {
		t.Fatalf("%d messages are leased", len(got.Messages))
	}
	work := func() *CallersTx {
		t.Helper()
		tx := s.Begin(t)
		tx.Exec(t, "INSERT INTO paid VALUES ('42')")
		settled, err := tx.InTx(t).Settle(ctx, []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoAck}})
		ok(t, err)
		ok(t, settled[0].Err)
		return tx
	}
	ok(t, work().Rollback())
	if !Has(t, c, "42") {
		t.Fatal("it is gone though the work was undone")
	}
	ok(t, work().Commit())
	if Has(t, c, "42") {
		t.Fatal("it is still there")
	}
}
