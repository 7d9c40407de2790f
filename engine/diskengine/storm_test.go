package diskengine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// TestSettingsInAStorm writes settings of queues while many push, lease, settle, cancel,
// redrive, purge and list, the clock steps either way and the loader looks on: all holds
// together, and no two writes of settings have one revision.
func TestSettingsInAStorm(t *testing.T) {
	e, clock := openMem(t)
	names := []string{"a", "b", "c"}
	var mu sync.Mutex
	revisions := make(map[string]bool)
	var ids []engine.ID
	note := func(id engine.ID) {
		mu.Lock()
		defer mu.Unlock()
		if ids = append(ids, id); len(ids) > 200 {
			ids = ids[100:]
		}
	}
	var storm sync.WaitGroup
	each := func(seed uint64, n int, fn func(rng *rand.Rand, name string) error) {
		storm.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 7))
			for range n {
				if err := fn(rng, names[rng.IntN(len(names))]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for seed := range uint64(3) {
		each(seed, 600, func(rng *rand.Rand, name string) error {
			var msgs []engine.Message
			for range 1 + rng.IntN(20) {
				m := fleeting(fmt.Sprint(rng.IntN(60)), time.Duration(rng.IntN(3)-1)*time.Second, time.Duration(rng.IntN(3))*time.Second)
				m.Queue, m.OnConflict, m.MaxAttempts = names[rng.IntN(3)], engine.Conflict(rng.IntN(5)), 1+rng.Uint32N(2)
				if rng.IntN(4) == 0 {
					m.ExpireAfter = time.Second
				}
				msgs = append(msgs, m)
			}
			push := e.Push
			if rng.IntN(3) == 0 {
				push = e.PushAtomic
			}
			r, err := push(t.Context(), msgs)
			if len(r) > 0 && r[0].Err != nil {
				return nil // which is the error of all of an atomic push
			}
			return err
		})
		each(10+seed, 600, func(rng *rand.Rand, name string) error {
			g, err := e.Lease(t.Context(), []engine.Want{
				{Queue: "a", Max: 5, TTR: time.Second, Remote: true}, {Queue: "b", Max: 5, TTR: time.Hour}, {Queue: "c", Max: 1}})
			if err != nil {
				return err
			}
			var s []engine.Settlement
			for _, q := range g.Queues {
				for _, l := range q.Messages {
					note(l.ID)
					do := []engine.Action{engine.Ack, engine.Bury, engine.Release, engine.Retry, engine.Extend}[rng.IntN(5)]
					s = append(s, engine.Settlement{Token: l.Token, Do: do})
				}
			}
			_, err = e.Settle(t.Context(), s)
			return err
		})
		each(20+seed, 150, func(rng *rand.Rand, name string) error {
			revision, err := e.Configure(t.Context(), name, engine.Settings{
				DeadKeep: time.Duration(rng.IntN(3)) * time.Second, DeadMax: rng.Int64N(6), MaxPending: rng.Int64N(3) * 40,
				InFlight: rng.Int64N(4) * 3, Rate: float64(rng.IntN(3) * 100), Defaults: engine.Terms{Remember: time.Duration(rng.IntN(2)) * time.Second},
			}, "")
			mu.Lock()
			defer mu.Unlock()
			if at := name + " " + revision; err == nil && revisions[at] {
				err = fmt.Errorf("written twice: %s", at)
			} else {
				revisions[at] = true
			}
			return err
		})
	}
	each(30, 400, func(rng *rand.Rand, name string) error {
		refs := []engine.Ref{{Queue: name, Key: fmt.Sprint(rng.IntN(60))}, {Queue: "a", Key: fmt.Sprint(rng.IntN(60)), IfState: engine.Ready}}
		_, err := e.Cancel(t.Context(), refs)
		return err
	})
	each(31, 120, func(rng *rand.Rand, name string) error {
		mu.Lock()
		some := append([]engine.ID(nil), ids...)
		mu.Unlock()
		_, err := e.Redrive(t.Context(), name, some, 0)
		if err == nil && rng.IntN(3) == 0 {
			_, err = e.Purge(t.Context(), name, engine.PurgeAlso(rng.IntN(4)))
		}
		return err
	})
	each(32, 200, func(rng *rand.Rand, name string) error {
		q := engine.ListQuery{Queue: name, State: []engine.State{engine.Scheduled, engine.Ready, engine.Leased, engine.Dead}[rng.IntN(4)], Limit: 3, Newest: rng.IntN(2) == 0}
		for {
			page, err := e.List(t.Context(), q)
			if q.After = page.Next; err != nil || q.After == "" {
				return err
			}
		}
	})
	each(33, 400, func(rng *rand.Rand, name string) error {
		clock.Advance(time.Duration(rng.IntN(900)-200) * time.Millisecond)
		e.tidy()
		if q := e.queue(name); q != nil {
			e.lookAfter(q)
		}
		return nil
	})
	storm.Wait()
	for _, q := range e.queues() {
		sound(t, q)
	}
}
