package diskengine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// newLeasing is a call that wants up to so many messages of each queue.
func newLeasing(e *Engine, names []string, most int) *leasing {
	l := &leasing{e: e, now: e.now(), wants: wantsOf(names, most, true), grant: &engine.Grant{Queues: make([]engine.Granted, len(names))}}
	l.remote.store, l.local.store = e.store, e.store
	return l
}

// TestOneWantMayBeHeavyWhileManyQueuesAreLocked has the first of several wants of a call
// take as much as one may, of bodies and of what is past its expiry: the others are served
// when its queue is free again.
func TestOneWantMayBeHeavyWhileManyQueuesAreLocked(t *testing.T) {
	for name, heavy := range map[string]func() []engine.Message{
		"bodies": func() (msgs []engine.Message) {
			for range 9 {
				msgs = append(msgs, engine.Message{Queue: "a", Content: engine.Content{Body: make([]byte, engine.AnswerBytes/8)}})
			}
			return msgs
		},
		"expired": func() (msgs []engine.Message) {
			for range expireMost + 1 {
				msgs = append(msgs, engine.Message{Queue: "a", Terms: engine.Terms{ExpireAfter: time.Second}})
			}
			return msgs
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, clock := openMem(t)
			names := []string{"a", "b", "c"}
			pushAll(t, e, append(heavy(), engine.Message{Queue: "b"}, engine.Message{Queue: "c"}))
			clock.Advance(time.Minute)
			l := newLeasing(e, names, 100)
			shares := make([]share, len(names))
			for i, name := range names {
				shares[i] = share{q: e.queue(name), items: []int{i}}
			}
			if err := e.joint(shares, func(shares []share) error { return l.serve(t.Context(), shares, false) }); err != nil {
				t.Fatal(err)
			}
			if !l.grant.Queues[0].More || len(l.alone) != 2 || l.grant.Queues[1].Messages != nil || l.grant.Queues[2].Messages != nil {
				t.Errorf("%d wants are left: %d, %d, %d messages", len(l.alone), len(l.grant.Queues[0].Messages), len(l.grant.Queues[1].Messages), len(l.grant.Queues[2].Messages))
			}
			if err := errors.Join(l.remote.wait(), l.local.wait()); err != nil {
				t.Fatal(err)
			}
			g, err := e.Lease(t.Context(), wantsOf(names, 100, true))
			if err != nil {
				t.Fatal(err)
			}
			for i := 1; i < len(names); i++ {
				if g := g.Queues[i]; g.Err != nil || len(g.Messages) != 1 {
					t.Errorf("%s: %d messages, %v", names[i], len(g.Messages), g.Err)
				}
				sound(t, e.queue(names[i]))
			}
			sound(t, e.queue("a"))
		})
	}
}

// TestLeaseAloneEndsWithItsCaller has nobody wait any more for a queue that is served by
// itself: nothing is leased.
func TestLeaseAloneEndsWithItsCaller(t *testing.T) {
	e, _ := openMem(t)
	pushAll(t, e, []engine.Message{{Queue: "a"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := newLeasing(e, []string{"a"}, 1)
	if err := l.serveAlone(ctx, []share{{q: e.queue("a"), items: []int{0}}}); err != nil {
		t.Fatal(err)
	}
	if g := l.grant.Queues[0]; !errors.Is(g.Err, context.Canceled) || len(g.Messages) > 0 {
		t.Errorf("%d messages, %v", len(g.Messages), g.Err)
	}
	sound(t, e.queue("a"))
}
