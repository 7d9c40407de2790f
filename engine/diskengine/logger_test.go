package diskengine_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// stuck is a handler that blocks.
type stuck struct {
	slog.Handler
	begun, goOn chan struct{}
}

func (s stuck) Handle(context.Context, slog.Record) error {
	select {
	case s.begun <- struct{}{}:
	default:
	}
	<-s.goOn
	return nil
}

// TestLoggerThatBlocks: who is told something that a blocked logger does not take waits for it, and nobody else.
func TestLoggerThatBlocks(t *testing.T) {
	h := stuck{slog.NewTextHandler(t.Output(), nil), make(chan struct{}, 1), make(chan struct{})}
	d := disktest.New(nil)
	e := place{d, "data", diskengine.Config{Logger: slog.New(h), MinFreeBytes: -1}, diskengine.Tune{}}.open(t)
	must(t, pushAll(t, e, message("q", "a", 0), message("q", "b", 0)))
	settle(t, e, lease(t, e, "q", 1), engine.Ack) // the other has its turn
	must(t, e.Flush(t.Context()))
	spoil(t, d, 100)
	leased := make(chan error, 1)
	go func() {
		_, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 5}})
		leased <- err
	}()
	<-h.begun
	pushed := make(chan error, 1)
	go func() { pushed <- pushAll(t, e, message("other", "c", 0)) }()
	select {
	case err := <-pushed:
		must(t, err)
	case <-time.After(time.Minute):
		t.Error("a push waits for what logs")
	}
	close(h.goOn)
	must(t, <-leased)
	must(t, e.Close())
}
