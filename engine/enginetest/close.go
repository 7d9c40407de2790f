package enginetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var closeTests = []test{
	{"calls after it get ErrClosed, and a second close nil", func(b *bed) {
		r := b.push(b.msg("k", dueNow))
		b.is(b.e.Close(), nil)
		b.is(b.e.Close(), nil)
		for what, err := range b.everyCall(b.Context(), b.id(r.ID)) {
			if !errors.Is(err, engine.ErrClosed) {
				b.Errorf("%s: %v", what, err)
			}
		}
		b.e.Watch(func(string) {})()
		b.e.Capabilities()
	}},
	{"it waits for calls under way, which end clearly", func(b *bed) {
		var wg sync.WaitGroup
		started := make(chan struct{}, 8)
		for range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					r, err := b.e.Push(b.Context(), []engine.Message{b.msg("", dueNow)})
					if err == nil && r[0].Err != nil {
						err = r[0].Err
					}
					if i == 0 {
						started <- struct{}{}
					}
					if err != nil {
						if !errors.Is(err, engine.ErrClosed) {
							b.Errorf("push: %v", err)
						}
						return
					}
					if _, err := b.e.Lease(b.Context(), []engine.Want{{Queue: b.queue, Max: 2}}); err != nil && !errors.Is(err, engine.ErrClosed) {
						b.Errorf("lease: %v", err)
					}
				}
			})
		}
		for range 8 {
			<-started
		}
		b.is(b.e.Close(), nil)
		wg.Wait()
	}},
}

// everyCall makes each call once and returns their errors.
func (b *bed) everyCall(ctx context.Context, ref engine.Ref) map[string]error {
	all := map[string]error{}
	_, all["push"] = b.e.Push(ctx, []engine.Message{b.msg("other", dueNow)})
	_, all["lease"] = b.e.Lease(ctx, []engine.Want{{Queue: b.queue, Max: 1}})
	_, all["settle"] = b.e.Settle(ctx, []engine.Settlement{{Token: "x", Do: engine.Ack}})
	if b.caps.Cancel {
		_, all["cancel"] = b.e.Cancel(ctx, []engine.Ref{ref})
	}
	if b.caps.Reschedule {
		_, all["reschedule"] = b.e.Reschedule(ctx, ref, dueNow)
	}
	if b.caps.Get {
		_, all["get"] = b.e.Get(ctx, ref)
	}
	if b.caps.Claim {
		_, all["claim"] = b.e.(engine.Claimer).Claim(ctx, ref, engine.Want{})
	}
	if b.caps.Peek {
		_, all["peek"] = b.e.(engine.Peeker).Peek(ctx, []string{b.queue})
	}
	if b.caps.Find {
		_, all["find"] = b.e.(engine.Finder).Find(ctx, []engine.ID{ref.ID})
	}
	if b.caps.Atomic {
		_, all["push atomic"] = b.e.(engine.AtomicPusher).PushAtomic(ctx, []engine.Message{b.msg("other", dueNow)})
	}
	if b.caps.List {
		_, all["list"] = b.e.(engine.Lister).List(ctx, engine.ListQuery{Queue: b.queue, State: engine.Ready, Limit: 1})
	}
	if b.caps.Count {
		_, all["queue"] = b.e.(engine.Counter).Queue(ctx, b.queue)
		_, _, all["queues"] = b.e.(engine.Counter).Queues(ctx, "", 1)
	}
	if b.caps.Forecast {
		_, all["forecast"] = b.e.(engine.Forecaster).Forecast(ctx, b.queue, time.Minute, time.Hour)
	}
	if b.caps.Pause {
		all["pause"] = b.e.(engine.Pauser).Pause(ctx, b.queue, 0)
		all["resume"] = b.e.(engine.Pauser).Resume(ctx, b.queue)
	}
	if b.caps.Purge {
		_, all["purge"] = b.e.(engine.Purger).Purge(ctx, b.queue, engine.PurgeDead)
	}
	if b.caps.Settings {
		_, _, all["settings"] = b.e.(engine.Configurer).Settings(ctx, b.queue)
		_, all["configure"] = b.e.(engine.Configurer).Configure(ctx, b.queue, engine.Settings{}, "")
	}
	if b.caps.Redrive {
		_, all["redrive"] = b.e.(engine.Redriver).Redrive(ctx, b.queue, nil, 0)
	}
	return all
}
