package sqltest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// looks counts the queues whose heads transactions read, and the most rows of the ranges that
// they read.
type looks struct {
	sqlengine.Store
	n, rows atomic.Int64
}

type looksTx struct {
	sqlengine.Tx
	l *looks
}

func (l *looks) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	return l.Store.In(ctx, op, func(tx sqlengine.Tx) error { return do(looksTx{tx, l}) })
}

func (t looksTx) Open(ctx context.Context, first sqlengine.First) (sqlengine.Opened, error) {
	t.l.n.Add(int64(len(first.From)))
	t.count(first.Ranges)
	return t.Tx.Open(ctx, first)
}

func (t looksTx) Ranges(ctx context.Context, ranges []sqlengine.Range) ([][]*sqlengine.Row, error) {
	t.count(ranges)
	return t.Tx.Ranges(ctx, ranges)
}

func (t looksTx) count(ranges []sqlengine.Range) {
	for _, r := range ranges {
		t.l.rows.Add(int64(r.Most))
	}
}

func (t looksTx) Heads(ctx context.Context, from []sqlengine.LowBound) ([]sqlengine.Heads, error) {
	t.l.n.Add(int64(len(from)))
	return t.Tx.Heads(ctx, from)
}

func (t looksTx) Leave(ctx context.Context, from []sqlengine.LowBound) func() []sqlengine.Heads {
	t.l.n.Add(int64(len(from)))
	return t.Tx.Leave(ctx, from)
}

// Messages that end, or are due so late that no notice follows, need no look at heads.
func fewLooks(t *testing.T, bed Bed) {
	l := new(looks)
	e := bed.Open(t, func(s sqlengine.Store) sqlengine.Store { l.Store = s; return l })
	push(t, e, engine.Message{Queue: "q"})
	token := lease(t, e, 1)[0].Token
	l.n.Store(0)
	push(t, e, hour("k"), hour(""))
	_, err := e.Reschedule(patience(t), engine.Ref{Queue: "q", Key: "k"}, engine.When{In: 2 * time.Hour})
	ok(t, err)
	settled, err := e.Settle(patience(t), []engine.Settlement{{Token: token, Do: engine.Ack}})
	ok(t, err, settled[0].Err)
	errs, err := e.Cancel(patience(t), []engine.Ref{{Queue: "q", Key: "k"}})
	ok(t, err, errs[0])
	if n := l.n.Load(); n != 0 {
		t.Errorf("%d looks at what is first; want none", n)
	}
}

// A lease reads no more messages than in_flight allows, however many it asks for.
func readsNoMoreThanAllowed(t *testing.T, bed Bed) {
	l := new(looks)
	e := bed.Open(t, func(s sqlengine.Store) sqlengine.Store { l.Store = s; return l })
	_, err := e.Configure(t.Context(), "q", engine.Settings{InFlight: 1}, "")
	ok(t, err)
	push(t, e, engine.Message{Queue: "q"}, engine.Message{Queue: "q"}, engine.Message{Queue: "q"})
	for range 3 {
		l.rows.Store(0)
		if n := handle(t, e, 1000); n != 1 {
			t.Errorf("leased %d, want 1", n)
		}
		if n := l.rows.Load(); n > 10 {
			t.Errorf("ranges of %d rows were read for one", n)
		}
	}
}
