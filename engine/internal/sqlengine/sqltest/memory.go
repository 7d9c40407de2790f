package sqltest

import (
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// A message that died by a lapse is acked late while its key is pushed again: the key is held or
// remembered, never both, and so are the counts.
func lateAck(t *testing.T, bed Bed) {
	var b *between
	e := bed.Open(t, nil)
	late := bed.Open(t, func(s sqlengine.Store) sqlengine.Store { b = &between{Store: s}; return b })
	m := engine.Message{Queue: "q", Key: "k", Terms: engine.Terms{MaxAttempts: 1, Remember: time.Hour}}
	push(t, e, m)
	errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "k"}}) // the first memory locks the queue
	ok(t, err, errs[0])
	_, err = e.Purge(t.Context(), "q", engine.PurgeFinished)
	ok(t, err)
	push(t, e, m)
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1, TTR: time.Millisecond, Remote: true}})
	ok(t, err)
	token := g.Queues[0].Messages[0].Token
	for info, err := e.Queue(t.Context(), "q"); info.Dead == 0; info, err = e.Queue(patience(t), "q") {
		ok(t, err)
	}
	b.keys = func() { push(t, e, m) }
	settled, err := late.Settle(t.Context(), []engine.Settlement{{Token: token, Do: engine.Ack}})
	ok(t, err, settled[0].Err)
	info, err := e.Queue(t.Context(), "q")
	if ok(t, err); info.Ready != 1 || info.Finished != 0 {
		t.Errorf("%+v; want it ready, and nothing remembered", info)
	}
	settled, err = e.Settle(t.Context(), []engine.Settlement{{Token: lease(t, e, 1)[0].Token, Do: engine.Ack}})
	ok(t, err, settled[0].Err)
	info, err = e.Queue(t.Context(), "q")
	if ok(t, err); info.Finished != 1 {
		t.Errorf("%+v; want one key remembered", info)
	}
	if r, err := e.Push(t.Context(), []engine.Message{m}); err != nil || r[0].State != engine.Finished {
		t.Errorf("%+v, %v; want it remembered", r, err)
	}
}

// A push that looked before sees the first key that a queue remembers.
func firstMemory(t *testing.T, bed Bed) {
	var b *between
	e := bed.Open(t, nil)
	slow := bed.Open(t, func(s sqlengine.Store) sqlengine.Store { b = &between{Store: s}; return b })
	b.open = func() {
		push(t, e, engine.Message{Queue: "q", Key: "k", Terms: engine.Terms{Remember: time.Hour}})
		errs, err := e.Cancel(patience(t), []engine.Ref{{Queue: "q", Key: "k"}})
		ok(t, err, errs[0])
	}
	if r, err := slow.Push(patience(t), []engine.Message{hour("new"), hour("k")}); err != nil || r[0].Err != nil || !errors.Is(r[1].Err, engine.ErrExists) {
		t.Errorf("%+v, %v; want it refused, as the key is remembered", r, err)
	}
}

// The first key that a queue remembers does not undo a pause that came between.
func firstMemoryKeepsPause(t *testing.T, bed Bed) {
	var b *between
	e := bed.Open(t, nil)
	push(t, e, engine.Message{Queue: "q", Key: "k", Terms: engine.Terms{Remember: time.Hour}})
	other := bed.Open(t, func(s sqlengine.Store) sqlengine.Store { b = &between{Store: s}; return b })
	b.open = func() { ok(t, e.Pause(t.Context(), "q", 0)) }
	errs, err := other.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "k"}})
	ok(t, err, errs[0])
	if info, err := e.Queue(t.Context(), "q"); err != nil || !info.Paused || info.Finished != 1 {
		t.Errorf("%+v, %v; want it paused, and a key remembered", info, err)
	}
}

// A push that would expire at once conflicts with the holder of its key, too.
func pushExpired(t *testing.T, bed Bed) {
	e := bed.Open(t, nil)
	push(t, e, hour("other"))
	there := push(t, e, hour("k"))[0].ID
	late := engine.Message{Queue: "q", Key: "k", Due: engine.When{At: time.Now().Add(-time.Hour)}, OnConflict: engine.Keep, Terms: engine.Terms{ExpireAfter: time.Minute}}
	for range 3 {
		if r := push(t, e, late)[0]; r.Outcome != engine.Kept || r.ID != there {
			t.Errorf("%+v; want %d kept", r, there)
		}
	}
}
