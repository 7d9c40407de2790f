package pgengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

func raw(t testing.TB) *Engine {
	t.Helper()
	pool := connect(t, pgtest.Shared(t))
	return another(t, pool, newSchema(t, pool))
}

// another opens a store again, as another process does.
func another(t testing.TB, pool *pgxpool.Pool, schema string) *Engine {
	t.Helper()
	e := newEngine(pool, &Config{Schema: schema}, nil)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func push(t testing.TB, e engine.Engine, msgs ...engine.Message) []engine.PushResult {
	t.Helper()
	r, err := e.Push(t.Context(), msgs)
	ok(t, err)
	for i := range r {
		ok(t, r[i].Err)
	}
	return r
}

func lease(t testing.TB, e engine.Engine, queue string, most int) engine.Granted {
	t.Helper()
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: queue, Max: most, TTR: time.Minute, Remote: true}})
	ok(t, err)
	ok(t, g.Queues[0].Err)
	return g.Queues[0]
}

func settle(t testing.TB, e engine.Engine, s ...engine.Settlement) []engine.Settled {
	t.Helper()
	r, err := e.Settle(t.Context(), s)
	ok(t, err)
	return r
}

// Strings that PostgreSQL's text cannot store come back unchanged, and fail no other call.
func TestTextThatIsNone(t *testing.T) {
	t.Parallel()
	e := raw(t)
	keys := []string{"a\x00b", "\x00", "\x10", "\x10\x00", "\x10\x30", "a"}
	var msgs []engine.Message
	for _, key := range keys {
		msgs = append(msgs, engine.Message{Queue: "q", Key: key, Content: engine.Content{
			ContentType: "a\x00b", Headers: []engine.Header{{Name: "h", Value: "\x00"}}, Body: []byte(key)}})
	}
	push(t, e, msgs...)
	for _, key := range keys {
		info, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
		ok(t, err)
		if info.Key != key || string(info.Body) != key {
			t.Errorf("%q came back as %q with %q", key, info.Key, info.Body)
		}
	}
	for _, reason := range []string{"x\x00y", "\xff", "\x10"} {
		l := lease(t, e, "q", 2).Messages
		got := settle(t, e, engine.Settlement{Token: l[0].Token, Do: engine.Bury, Reason: reason}, engine.Settlement{Token: l[1].Token, Do: engine.Ack})
		if got[0].Err != nil || got[1].Err != nil {
			t.Errorf("%q: %v", reason, got)
		}
		info, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: l[0].ID})
		ok(t, err)
		if info.LastError != reason {
			t.Errorf("%q is kept as %q", reason, info.LastError)
		}
	}
}

// Of failures that are damaged in the database none is shown, and the next failure is.
func TestDamagedFailures(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	e := another(t, pool, schema)
	id := push(t, e, engine.Message{Queue: "q"})[0].ID
	settle(t, e, engine.Settlement{Token: lease(t, e, "q", 1).Messages[0].Token, Do: engine.Retry, When: &engine.When{}, Reason: "first"})
	_, err := pool.Exec(t.Context(), "UPDATE "+schema+".message SET failures = '\\x0100000000000000'")
	ok(t, err)
	for _, want := range []int{0, 1} {
		info, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: id})
		ok(t, err)
		if len(info.Failures) != want || want == 1 && info.LastError != "second" {
			t.Errorf("%+v, want %d", info.Failures, want)
		}
		settle(t, e, engine.Settlement{Token: lease(t, e, "q", 1).Messages[0].Token, Do: engine.Retry, When: &engine.When{}, Reason: "second"})
	}
}

// A token that was never given does not fail the others of its call.
func TestTokensOfNoQueue(t *testing.T) {
	t.Parallel()
	e := raw(t)
	push(t, e, engine.Message{Queue: "q"})
	l := lease(t, e, "q", 1).Messages
	for _, queue := range []uint64{12345, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		forged := codec.Token{Queue: queue, ID: l[0].ID, Nonce: codec.NewNonce()}.String()
		got := settle(t, e, engine.Settlement{Token: forged, Do: engine.Ack}, engine.Settlement{Token: l[0].Token, Do: engine.Extend})
		if !errors.Is(got[0].Err, engine.ErrLeaseLost) || got[1].Err != nil {
			t.Errorf("%d: %v", queue, got)
		}
	}
}

// Callers' transactions that hold all connections of a pool can go on.
func TestInTxWithAllConnections(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	c := open(t, pool, newSchema(t, pool))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := c.Push(ctx, "orders", nil)
	ok(t, err)
	for range pool.Config().MaxConns {
		in := inTx(t, c, begin(t, pool))
		for range 3 {
			if _, err := in.PushMany(ctx, slices.Repeat([]tarry.Draft{{Queue: "orders"}}, 400)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// undoing is a store that undoes transactions at their end.
type undoing struct {
	*store
	undo atomic.Bool // the next one
}

var errUndone = fmt.Errorf("%w by the test", sqlengine.ErrInternal)

func (s *undoing) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	if !s.undo.Swap(false) {
		return s.store.In(ctx, op, do)
	}
	err := s.store.In(ctx, op, func(tx sqlengine.Tx) error { return cmp.Or(do(tx), errUndone) })
	if err == errUndone {
		return sqlengine.ErrAgain
	}
	return err
}

// An undone transaction does not affect later ones.
func TestUndoneOnce(t *testing.T) {
	t.Parallel()
	e := raw(t)
	s := &undoing{store: e.store}
	again := sqlengine.New(s, sqlengine.Config{Name: "postgres", MaxBody: maxBody})
	for range 3 {
		push(t, e, engine.Message{Queue: "q"}, engine.Message{Queue: "q"})
	}
	leases := lease(t, e, "q", 6).Messages
	for _, l := range leases {
		settle(t, e, engine.Settlement{Token: l.Token, Do: engine.Bury})
	}
	s.undo.Store(true)
	got, err := again.Redrive(t.Context(), "q", nil, 4)
	if err != nil || got.Redriven != 4 {
		t.Errorf("%+v redriven, %v", got, err)
	}
	s.undo.Store(true)
	if info, err := again.Get(t.Context(), engine.Ref{Queue: "q", ID: leases[0].ID}); err != nil || info.ID != leases[0].ID {
		t.Errorf("got %+v, %v", info, err)
	}
	s.undo.Store(true)
	if n, err := again.Purge(t.Context(), "q", engine.PurgeDead); err != nil || n != 6 {
		t.Errorf("%d purged, %v", n, err)
	}
}

// A caller's open transaction does not delay leases of other messages.
func TestLeaseBesideAnOpenTransaction(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	c := open(t, pool, schema)
	e := another(t, pool, schema)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := e.Configure(ctx, "orders", engine.Settings{DeadMax: 1, DeadKeep: time.Hour}, "")
	ok(t, err)
	push(t, e, engine.Message{Queue: "orders"}, engine.Message{Queue: "orders", Key: "locked"})
	in := inTx(t, c, begin(t, pool))
	_, err = in.Push(ctx, "orders", nil)
	ok(t, err)
	ok(t, in.Cancel(ctx, tarry.ByKey("locked").Of("orders")))
	g, err := e.Lease(ctx, []engine.Want{{Queue: "orders", Max: 10}})
	if err != nil || len(g.Queues[0].Messages) != 1 {
		t.Fatalf("leased %v, %v", g, err)
	}
	for range 10 {
		if g, err = e.Lease(ctx, []engine.Want{{Queue: "orders", Max: 10}}); err != nil {
			t.Fatal(err)
		}
	}
	if q := g.Queues[0]; q.More || q.NextDue.Sub(g.Now) < 50*time.Millisecond || q.NextDue.Sub(g.Now) > 100*time.Millisecond {
		t.Errorf("asked again and again, next in %v", q.NextDue.Sub(g.Now))
	}
}

// Settings of a call's statements do not affect the caller's transaction.
func TestInTxLeavesPlansAlone(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	c := open(t, pool, newSchema(t, pool))
	tx := begin(t, pool)
	_, err := tx.Exec(t.Context(), "SET LOCAL enable_hashjoin = off")
	ok(t, err)
	in := inTx(t, c, tx)
	for range 2 {
		_, err = in.Push(t.Context(), "orders", nil)
		ok(t, err)
	}
	for _, setting := range []struct{ name, want string }{{"enable_seqscan", "on"}, {"enable_hashjoin", "off"}, {"enable_bitmapscan", "on"}, {"enable_mergejoin", "on"}} {
		var got string
		ok(t, tx.QueryRow(t.Context(), "SELECT current_setting($1)", setting.name).Scan(&got))
		if got != setting.want {
			t.Errorf("%s is %s after a push", setting.name, got)
		}
	}
}

// Tables that change while an engine is open cause no network errors.
func TestTablesThatChange(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	c := open(t, pool, schema)
	for _, text := range []string{"ALTER TABLE %s.tally_change RENAME ns TO others", "ALTER TABLE %s.message RENAME TO others"} {
		_, err := pool.Exec(t.Context(), fmt.Sprintf(text, schema))
		ok(t, err)
		_, err = c.Push(t.Context(), "orders", nil)
		if !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), "tarry migrate") {
			t.Error(err)
		}
	}
}
