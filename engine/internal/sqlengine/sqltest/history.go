package sqltest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// listed returns how many finished messages of queue q are listed.
func listed(t *testing.T, e engine.Whole) int {
	t.Helper()
	return len(listedIDs(t, e))
}

// listedIDs returns the finished messages of queue q that are listed.
func listedIDs(t *testing.T, e engine.Whole) (ids []engine.ID) {
	t.Helper()
	page, err := e.List(patience(t), engine.ListQuery{Queue: "q", State: engine.Finished, Limit: engine.MaxPage})
	ok(t, err)
	for i := range page.Messages {
		ids = append(ids, page.Messages[i].ID)
	}
	return ids
}

// finish pushes, leases and acks messages.
func finish(t *testing.T, e engine.Engine, n int) {
	t.Helper()
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i].Queue = "q"
	}
	push(t, e, msgs...)
	for n > 0 {
		n -= handle(t, e, n)
	}
}

// setHistory sets how many finished messages queue q lists.
func setHistory(t *testing.T, e engine.Whole, most int64) {
	t.Helper()
	_, err := e.Configure(patience(t), "q", engine.Settings{History: time.Hour, HistoryMax: most}, "")
	ok(t, err)
}

// Two processes that trim a history at the same time do not drop too many.
func trimsBeside(t *testing.T, bed Bed) {
	reading, goOn := make(chan struct{}), make(chan struct{})
	b := &between{}
	e, other := bed.Open(t, func(s sqlengine.Store) sqlengine.Store { b.Store = s; return b }), bed.Open(t, nil)
	setHistory(t, other, 1000)
	finish(t, other, 60)
	setHistory(t, other, 50)
	b.read = func() {
		close(reading)
		<-goOn
	}
	lease(t, e, 1) // trims
	<-reading
	lease(t, other, 1)
	bed.Waits(t)
	close(goOn)
	for n := 60; n != 50; n = listed(t, e) {
		if n < 50 {
			t.Fatalf("%d are left of 50", n)
		}
	}
	ok(t, other.Close()) // after its trim
	if n := listed(t, e); n != 50 {
		t.Errorf("%d are left of 50", n)
	}
}

// A trim that began while the settings had no history drops nothing that was listed since.
func trimBesideSettings(t *testing.T, bed Bed) {
	b := &between{ended: make(chan string, 100)}
	e, other := bed.Open(t, func(s sqlengine.Store) sqlengine.Store { b.Store = s; return b }), bed.Open(t, nil)
	_, err := other.Configure(patience(t), "q", engine.Settings{History: engine.Never}, "")
	ok(t, err)
	set := make(chan struct{})
	b.told = func() {
		waits := make(chan struct{})
		go func() {
			defer close(set)
			setHistory(t, other, 1000)
			finish(t, other, 5)
		}()
		go func() {
			defer close(waits)
			bed.Waits(t)
		}()
		select {
		case <-set:
		case <-waits: // for the trim
		}
	}
	lease(t, e, 1) // trims
	for op := ""; op != "history"; op = <-b.ended {
	}
	<-set
	if n := listed(t, other); n != 5 {
		t.Errorf("%d are listed of 5", n)
	}
}

// An ack in a caller's transaction is listed with its commit.
func ackInTransaction(t *testing.T, bed Bed) {
	e := bed.Open(t, nil)
	setHistory(t, e, 1000)
	finish(t, e, 1)
	push(t, e, engine.Message{Queue: "q", Key: "k"})
	acks := acksOf(lease(t, e, 1))
	tx := bed.Begin(t, e)
	settled, err := tx.Settle(patience(t), acks)
	ok(t, err, settled[0].Err)
	if n := listed(t, e); n != 1 {
		t.Errorf("%d are listed before the commit", n)
	}
	ok(t, tx.Commit())
	i, err := e.Get(patience(t), engine.Ref{Queue: "q", Key: "k"})
	if ok(t, err); i.Ending != engine.Acked || i.Started.IsZero() || listed(t, e) != 2 {
		t.Errorf("%+v", i)
	}
}

// A history that the settings have no longer goes, though no URL has one.
func historyUnset(t *testing.T, bed Bed) {
	withoutURL := func(s sqlengine.Store) sqlengine.Store { return s }
	e, other := bed.Open(t, withoutURL), bed.Open(t, withoutURL)
	setHistory(t, e, 1000)
	finish(t, e, 60)
	_, err := other.Configure(patience(t), "q", engine.Settings{}, "")
	ok(t, err)
	ctx := patience(t)
	for n := int64(60); n > 0; {
		lease(t, e, 1)
		q, err := other.Queue(ctx, "q")
		ok(t, err)
		n = q.History
	}
}

// A trim neither waits for rows that others have locked, while leases wait for it, nor drops
// younger ones for them. It goes on when they are free.
func trimBesideLocked(t *testing.T, bed Bed) {
	var s sqlengine.Store
	e := bed.Open(t, func(opened sqlengine.Store) sqlengine.Store { s = opened; return opened })
	set := func(most int64) {
		t.Helper()
		_, err := e.Configure(patience(t), "q", engine.Settings{History: time.Hour, HistoryMax: most, InFlight: 100}, "")
		ok(t, err)
	}
	set(1000)
	finish(t, e, 60)
	all := listedIDs(t, e)
	nums, err := s.Names(patience(t), []string{"q"}, true)
	ok(t, err)
	first := sqlengine.Range{Queue: nums[0], Kind: sqlengine.Finished, Span: codec.WholeList, Most: 5, Lock: sqlengine.Wait}
	locked, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.In(context.WithoutCancel(t.Context()), "test", func(tx sqlengine.Tx) error {
			_, err := tx.Ranges(t.Context(), []sqlengine.Range{first})
			close(locked)
			<-release
			return err
		})
	}()
	<-locked
	trimmed := func(to int) {
		ctx := patience(t)
		for n := 60; n != to; n = listed(t, e) {
			if lease(t, e, 1); n < to || ctx.Err() != nil {
				t.Errorf("%d are left, not %d", n, to)
				return
			}
		}
	}
	set(20)
	trimmed(25)
	close(release)
	ok(t, <-ended)
	trimmed(20)
	if left := listedIDs(t, e); !slices.Equal(left, all[40:]) {
		t.Errorf("the youngest are %v, left are %v", all[40:], left)
	}
}
