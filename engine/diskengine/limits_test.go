package diskengine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestAtomicPushBeyondTheLimit: where there are more messages than may be by now, a push as one that makes
// none is accepted, as one by one.
func TestAtomicPushBeyondTheLimit(t *testing.T) {
	p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, RetryFor: -1, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 128 << 10, OnHeap: true}}
	e := p.open(t)
	a, b := message("q", "a", time.Hour), message("q", "b", time.Hour)
	err := pushAll(t, e, a, b, message("q", "c", time.Hour))
	if err = errors.Join(err, e.Close()); err != nil {
		t.Fatal(err)
	}
	p.cfg.MaxPending = 2
	e = p.open(t)
	a.OnConflict, b.OnConflict = engine.Replace, engine.Keep
	if err := pushAll(t, e, a, b); err != nil {
		t.Error(err)
	}
	if _, err := e.PushAtomic(t.Context(), []engine.Message{a, b}); err != nil {
		t.Error(err)
	}
	if _, err := e.PushAtomic(t.Context(), []engine.Message{a, message("q", "d", 0)}); !errors.Is(err, engine.ErrLimit) {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
