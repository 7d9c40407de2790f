package sqltest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// believing counts the transactions that take something for granted.
type believing struct {
	sqlengine.Store
	n atomic.Int64
}

func (s *believing) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	return s.Store.In(ctx, op, func(tx sqlengine.Tx) error { return do(&believingTx{tx, s}) })
}

type believingTx struct {
	sqlengine.Tx
	s *believing
}

func (t *believingTx) Believe(ctx context.Context, b sqlengine.Belief) (func() sqlengine.Opened, error) {
	t.s.n.Add(1)
	return t.Tx.Believe(ctx, b)
}

// Pushes that take for granted what was seen of a queue go by what others have set and
// remembered since, and do not wait for who is about to.
func believed(t *testing.T, bed Bed) {
	s := new(believing)
	e := bed.Open(t, func(to sqlengine.Store) sqlengine.Store {
		s.Store = to
		return s
	})
	other := bed.Open(t, nil)
	// Where the database's time is not known well, or after one that was wrong, some look.
	blindly := func() {
		t.Helper()
		for range 1000 {
			before := s.n.Load()
			push(t, e, engine.Message{Queue: "q", Due: engine.When{In: time.Hour}})
			if s.n.Load() > before {
				return
			}
		}
		t.Fatal("no push takes anything for granted")
	}
	blindly()
	_, err := other.Configure(patience(t), "q", engine.Settings{Defaults: engine.Terms{MaxAttempts: 3}}, "")
	ok(t, err)
	push(t, e, engine.Message{Queue: "q", Key: "set"})
	info, err := e.Get(patience(t), engine.Ref{Queue: "q", Key: "set"})
	if ok(t, err); info.MaxAttempts != 3 {
		t.Errorf("%d attempts, by the settings 3", info.MaxAttempts)
	}

	blindly()
	tx := bed.Begin(t, other)
	_, err = tx.Push(patience(t), []engine.Message{{Queue: "q", Key: "a", Terms: engine.Terms{Remember: time.Hour}}})
	ok(t, err)
	blindly()
	ok(t, tx.Commit())
	errs, err := other.Cancel(patience(t), []engine.Ref{{Queue: "q", Key: "a"}})
	ok(t, err, errs[0])
	again, err := e.Push(patience(t), []engine.Message{{Queue: "q", Key: "a"}})
	if ok(t, err); !errors.Is(again[0].Err, engine.ErrExists) {
		t.Errorf("a push of a remembered key: %+v", again[0])
	}
}
