package diskengine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// PushAtomic keeps all messages or none, also over several queues: they are pushed in one step
// and are one entry of the log. Those that were refused have an error in the results. The
// bodies of older messages that the push keeps may have engine.MaxAtomicBytes together; more
// is an ErrTooLarge.
func (e *Engine) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if err := engine.CheckAtomic(msgs); err != nil {
		return nil, err
	}
	a := newAtomicPush(msgs)
	err := e.admitted(ctx, msgs, 0, a.run)
	for more, ok := errors.AsType[keptBody](err); ok; more, ok = errors.AsType[keptBody](err) {
		a = newAtomicPush(msgs)
		err = e.admitted(ctx, msgs, more, a.run)
	}
	if err != nil {
		return nil, err
	}
	for i := range a.results {
		if err := a.results[i].Err; err != nil {
			return a.results, err
		}
	}
	return a.results, nil
}

// atomicPush pushes messages all together. One step finds out whether any of them would be
// refused, and pushes all if not. The step takes about 1 µs for each message, and the time to
// copy its body twice; a large body is copied once, as the other copy is made before the step.
type atomicPush struct {
	msgs    []engine.Message
	hashes  []keyLookup
	shared  []bool // whether another message has the key too
	results []engine.PushResult

	// What the pushes so far would have made:
	keys map[keyName]*planned // those that several messages have
	live map[*queue]int64     // how many live messages more than now
	news int64                // new messages of all queues, with those that expire at once
	kept int                  // bytes of contents that are kept
	more keptBody             // bytes of those that are large
}

// keyName is a key in a queue.
type keyName struct{ queue, key string }

// planned is what would have a key.
type planned struct {
	rules.Holder
	due     int64
	policy  engine.Policy
	bytes   int  // of the content
	expired bool // it had expired when it was pushed, and counts as live until a push meets it
}

func newAtomicPush(msgs []engine.Message) *atomicPush {
	return &atomicPush{msgs: msgs, results: make([]engine.PushResult, len(msgs)), hashes: make([]keyLookup, len(msgs)), shared: make([]bool, len(msgs))}
}

func (a *atomicPush) run(c *call) error {
	err := c.seek(len(a.msgs), func(i int) (string, string) { return a.msgs[i].Queue, a.msgs[i].Key }, a.hashes)
	if err != nil {
		return err
	}
	a.index()
	ahead := make([]*memtable.Ahead, len(a.msgs))
	for i := range a.msgs {
		if isLarge(&a.msgs[i]) {
			ahead[i] = c.e.store.Memtables.Ahead(beforeBody(&a.msgs[i]), a.msgs[i].Body)
			defer ahead[i].Drop()
		}
	}
	c.group = slices.Grow(c.group, int(weight(a.msgs))) // it would otherwise grow under the lock
	return c.step(func() error { return a.push(c, ahead) })
}

// index notes the messages that share queue and key with another message of the call.
func (a *atomicPush) index() {
	first := make(map[keyName]int, len(a.msgs))
	for i := range a.msgs {
		if a.msgs[i].Key == "" {
			continue
		}
		n := keyName{a.msgs[i].Queue, a.msgs[i].Key}
		if k, ok := first[n]; ok {
			a.shared[k], a.shared[i] = true, true
		} else {
			first[n] = i
		}
	}
}

// push is the step in which all are pushed, or one is refused.
func (a *atomicPush) push(c *call, ahead []*memtable.Ahead) error {
	refused, err := a.plan(c)
	if err != nil || refused {
		return err
	}
	if most := c.e.cfg.MaxPending; most > 0 && a.news > 0 && c.e.live+a.news > most {
		for i := range a.msgs {
			a.results[i].Err = engine.Refuse("push", refOf(&a.msgs[i]), engine.ErrLimit)
		}
		return nil
	}
	older := c.keptRoom
	defer func() { c.keptRoom, c.ahead = older, nil }()
	c.keptRoom = math.MaxInt // plan has looked
	for i := range a.msgs {
		c.ahead = ahead[i]
		if a.results[i], err = c.push(&a.msgs[i], &a.hashes[i]); err != nil {
			return err // cannot happen: plan has read all that is needed
		}
	}
	return nil
}

// plan finds out whether any push would be refused, and looks up what they need.
func (a *atomicPush) plan(c *call) (refused bool, err error) {
	clear(a.results)
	a.keys, a.live = make(map[keyName]*planned), make(map[*queue]int64)
	a.news, a.kept, a.more = 0, 0, 0
	var lack error
	for i := range a.msgs {
		no, err := a.planOne(c, i)
		if err == store.ErrLack {
			lack = err
			continue
		}
		if err != nil {
			return false, err
		}
		a.results[i].Err = no
		refused = refused || no != nil
	}
	if lack == nil && a.more > c.keptRoom {
		return false, a.more
	}
	return refused, lack
}

// planOne says why one push would be refused; nil: it would not.
func (a *atomicPush) planOne(c *call, i int) (refused, err error) {
	in := &a.msgs[i]
	if err := c.e.refuseBody(in); err != nil {
		return err, nil
	}
	q, err := c.visit(in.Queue, true)
	if err != nil {
		return nil, err
	}
	c.see(q)
	p, err := a.find(c, q, i)
	if err != nil {
		return nil, err
	}
	o, refused := rules.Push(in, &p.Holder)
	if o == engine.Created && refused == nil {
		refused = q.settings.RefusePending(refOf(in), q.live+a.live[q])
	}
	switch {
	case refused != nil && o == engine.Created:
		a.results[i] = engine.PushResult{}
		return refused, nil
	case refused != nil, o == engine.Kept:
		return refused, nil
	case o == engine.Created:
		a.news++
		a.live[q]++
	}
	if o == engine.Created || in.OnConflict != engine.KeepDue {
		p.due = in.Due.Resolve(c.now)
	}
	if o == engine.Created || in.OnConflict != engine.Rearm {
		p.policy, p.bytes = in.Resolve(q.settings.Terms()), len(in.Body)
	} else if a.kept += p.bytes; a.kept > engine.MaxAtomicBytes {
		return nil, refuseKept(a.kept)
	} else if p.bytes > smallBody {
		a.more += keptBody(p.bytes)
	}
	p.Holder = rules.Holder{State: engine.Scheduled}     // or ready: later pushes treat both alike
	if at := rules.Expiry(p.due, &p.policy); at < c.ms { // it is gone before the next is pushed
		p.Holder, p.expired = rules.Holder{Ending: engine.Expired, Ended: at}, true
		if at+rules.Millis(p.policy.Remember) > c.ms {
			p.State = engine.Finished
		}
	}
	return nil, nil
}

// find returns what would have the key of a push, and reads what it needs.
func (a *atomicPush) find(c *call, q *queue, i int) (*planned, error) {
	in, n := &a.msgs[i], keyName{q.name, a.msgs[i].Key}
	if p := a.keys[n]; p != nil {
		if p.expired {
			p.expired = false
			a.live[q]--
		}
		return p, nil
	}
	h, err := c.holderOf(q, in.Key, &a.hashes[i])
	if err != nil || in.Key == "" {
		return &planned{Holder: h.Holder}, err
	}
	// The message with the key may be gone when a later message of the push asks for the key.
	// So other entries of the key in sstables are read now.
	for _, area := range []memtable.Area{memtable.Live, memtable.Finished} {
		if _, err := c.spotsOfKey(q, area, []byte(in.Key), &a.hashes[i]); err != nil {
			return nil, err
		}
	}
	if h.m.q != nil && (a.shared[i] || in.OnConflict == engine.Rearm) { // what takes its place needs it
		if err := c.needContent(&h.m); err != nil {
			return nil, err
		}
	}
	a.results[i] = c.result(&h, 0, nil)
	p := &planned{Holder: h.Holder, due: h.m.Due, policy: h.m.Policy, bytes: len(h.m.content)}
	if a.shared[i] {
		a.keys[n] = p
	}
	return p, nil
}

// refuseKept is the error of an atomic push that keeps too many bytes of older messages.
func refuseKept(bytes int) error {
	return &engine.Error{Op: "push", Err: engine.ErrTooLarge,
		Hint: fmt.Sprintf("an atomic push would keep %d bytes of existing messages; on the disk at most %d are allowed: make several pushes", bytes, engine.MaxAtomicBytes)}
}
