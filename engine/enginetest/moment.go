package enginetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// crowd is more messages than an engine loads ahead at once.
const crowd = 6000

// census holds the pushed messages and their fates.
type census struct {
	b  *bed
	mu sync.Mutex

	pushed    []engine.ID
	handled   map[engine.ID]bool
	cancelled map[engine.ID]bool
}

func (c *census) some() engine.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return pick(c.pushed, rand.Uint32())
}

// left returns how many messages are still to come.
func (c *census) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pushed) - len(c.handled) - len(c.cancelled)
}

// handle leases and acks up to max messages. None may have been acked before.
func (c *census) handle(max int) (got int) {
	leases := c.b.take(max)
	if len(leases) == 0 {
		return 0
	}
	acks := make([]engine.Settlement, len(leases))
	for i, l := range leases {
		acks[i] = engine.Settlement{Token: l.Token, Do: engine.Ack}
	}
	settled, err := c.b.e.Settle(c.b.Context(), acks)
	if err != nil || len(settled) != len(acks) {
		c.b.Errorf("%d acks: %d results, %v", len(acks), len(settled), err)
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, l := range leases {
		if settled[i].Err != nil {
			c.b.Errorf("ack: %v", settled[i].Err)
		}
		if c.handled[l.ID] || c.cancelled[l.ID] {
			c.b.Errorf("id %v is leased; handled before: %v, cancelled: %v", l.ID, c.handled[l.ID], c.cancelled[l.ID])
		}
		c.handled[l.ID] = true
	}
	return len(leases)
}

func (c *census) cancel(id engine.ID) {
	if c.b.cancelled(c.b.id(id)) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handled[id] || c.cancelled[id] {
		c.b.Errorf("id %v is cancelled; handled before: %v, cancelled: %v", id, c.handled[id], c.cancelled[id])
	}
	c.cancelled[id] = true
}

// move reschedules a message that may be gone or leased.
func (c *census) move(id engine.ID, due engine.When) {
	_, err := c.b.e.Reschedule(c.b.Context(), c.b.id(id), due)
	if err != nil && !errors.Is(err, engine.ErrNotFound) && !errors.Is(err, engine.ErrLeased) {
		c.b.Errorf("reschedule: %v", err)
	}
}

// push pushes a key that may be in use. If that makes a new message, it must come too.
func (c *census) push(key string, due engine.When, on engine.Conflict) {
	m := c.b.msg(key, due)
	m.OnConflict = on
	r := c.b.pushed(m)
	switch {
	case errors.Is(r.Err, engine.ErrLeased) || errors.Is(r.Err, engine.ErrExists):
	case r.Err != nil:
		c.b.Errorf("push, %v: %v", on, r.Err)
	case r.Outcome == engine.Created:
		c.mu.Lock()
		c.pushed = append(c.pushed, r.ID)
		c.mu.Unlock()
	}
}

// momentTests act on many messages while time passes. An engine that loads messages before
// they are due must notice later changes.
var momentTests = []test{
	{"what is moved, replaced and cancelled while its time comes near is handled once or never", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		b.need("Reschedule", b.caps.Reschedule)
		b.need("Keys", b.caps.Keys)
		n, rounds, span, rest := crowd, 10, 30*b.unit, 40
		if b.h.Clock == nil {
			n, rounds, span, rest = crowd/10, 3, 3*b.unit, 4
		}
		msgs := make([]engine.Message, n)
		for i := range msgs { // many messages share a due time, and most are due much later
			msgs[i] = b.msg(fmt.Sprint(i), engine.When{In: span * time.Duration(1+i%50) / 50})
		}
		c := &census{b: b, handled: map[engine.ID]bool{}, cancelled: map[engine.ID]bool{}}
		for _, r := range b.pushEach(msgs) {
			c.pushed = append(c.pushed, r.ID)
		}
		soon := func() engine.When { return engine.When{In: span * time.Duration(rand.IntN(3)) / 20} }
		for range rounds {
			if b.h.Reopen != nil {
				b.reopen() // the engine must load ahead again
			}
			var others sync.WaitGroup
			for _, f := range []func(){
				func() { c.move(c.some(), soon()) },
				func() { c.push(fmt.Sprint(rand.IntN(n)), soon(), engine.Conflict(rand.IntN(5))) },
				func() { c.cancel(c.some()) },
				func() { c.handle(10) },
			} {
				others.Go(func() {
					for range 60 {
						f()
					}
				})
			}
			b.pass(1)
			others.Wait()
		}
		b.pass(rest)
		b.eventually("all that is left", func() bool {
			for c.handle(1000) > 0 {
			}
			return c.left() == 0
		})
		b.none("all were handled or cancelled")
		if b.caps.Count {
			b.counts(b.e.(engine.Counter), 0, 0, 0, 0)
		}
	}},
}
