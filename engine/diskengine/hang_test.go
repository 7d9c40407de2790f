package diskengine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestPushesToAHangingDiskSayWhatTheyKnow has pushes end while the disk does not answer: each is there once
// it does, or was told that nothing was pushed, and who was told neither may be either.
func TestPushesToAHangingDiskSayWhatTheyKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 24
		d, gate := disktest.New(nil), make(chan struct{})
		e := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{}}.open(t)
		synctest.Wait() // segments are ahead
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Sync && strings.HasSuffix(c.Name, ".log") {
				<-gate
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var errs [n]error
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() {
				var msgs []engine.Message
				for k := range 20 {
					m := message("q", fmt.Sprint(i, "-", k), time.Hour)
					m.Body = noise(50 << 10)
					msgs = append(msgs, m)
				}
				_, errs[i] = e.Push(ctx, msgs)
			})
			synctest.Wait()
		}
		group.Wait()
		close(gate)
		d.Hook(nil)
		let := 0
		for i, err := range errs {
			switch {
			case !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("push %d: %v", i, err)
			case strings.Contains(err.Error(), engine.HintUnknown):
				let++
			case !strings.Contains(err.Error(), "nothing was pushed: "):
				t.Errorf("push %d is told neither: %v", i, err)
			}
			_, gerr := e.Get(t.Context(), engine.Ref{Queue: "q", Key: fmt.Sprint(i, "-0")})
			if there := gerr == nil; there != strings.Contains(err.Error(), engine.HintUnknown) {
				t.Errorf("push %d: %v; it is there: %t", i, err, there)
			}
		}
		if let == 0 || let == n {
			t.Errorf("%d of %d pushes were let in", let, n)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

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
