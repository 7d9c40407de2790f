package diskengine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
)

// TestCloseOnAHangingDisk: Close says what hangs, and what goes on ends with the disk's answer.
func TestCloseOnAHangingDisk(t *testing.T) {
	for _, at := range []string{disktest.Sync, disktest.Close} {
		t.Run(at, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { closeHanging(t, at) }) })
	}
}

func closeHanging(t *testing.T, at string) {
	const bound = 7 * time.Second
	d := disktest.New(&disktest.Config{})
	p := place{d, "data", diskengine.Config{Logger: quiet, CloseTimeout: bound}, small}
	e := p.open(t)
	if err := pushAll(t, e, message("q", "kept", time.Hour)); err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	d.Hook(func(c disktest.Call) error {
		if c.Op == at && strings.HasSuffix(c.Name, ".log") {
			<-gate
		}
		return nil
	})
	if at == disktest.Sync {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Push(ctx, []engine.Message{message("q", "unknown", time.Hour)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a push: %v", err)
		}
	}
	for range 2 {
		began := time.Now()
		err := e.Close()
		if took := time.Since(began); took != bound || !errors.Is(err, engine.ErrUnavailable) ||
			!strings.Contains(err.Error(), "within 7s and goes on; the disk does not answer: "+at+" ") || !strings.Contains(err.Error(), ".log is under way for ") {
			t.Errorf("after %v: %v", took, err)
		}
	}
	if _, err := diskengine.OpenOn(d, p.dir, &p.cfg, p.tune); !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("it is opened beside: %v", err)
	}
	close(gate)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	e = p.open(t)
	defer e.Close()
	if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "kept"}); err != nil {
		t.Error(err)
	}
}
