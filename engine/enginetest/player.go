package enginetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// player applies the steps of a history to an engine and to the model, and compares their
// answers. With an injected clock both see the same instants and all times must agree.
// Otherwise due times and leases are hours long, nothing becomes due by itself, and times
// relative to now may differ a little.
type player struct {
	b       *bed
	ctx     context.Context
	caller  context.Context // context of the engine's calls: ctx, or one that ends during a call
	e       engine.Engine
	caps    engine.Capabilities
	m       *Model
	clock   *Clock // the engine's, nil when it has its own
	now     time.Time
	base    time.Time
	queues  []string
	ids     []engine.ID
	queueOf map[engine.ID]string
	leases  []heldLease
	swept   map[engine.ID]bool // expired messages that the engine must have dropped

	revision, older map[string]string          // by queue: the revision of its settings, and an earlier one
	rated           map[string]engine.Settings // queues that have a rate

	fault          *Fault // fault in some steps; nil: none
	failed         bool   // the engine reported a failure in this step
	armed          bool   // the fault may strike now
	faultPending   bool   // the fault has struck, and may still show
	inChore        bool   // in the middle of a chore
	afterPowerLoss bool   // the engine is what a power loss left
	before         *Model // the model before the call in progress; nil: there is none

	log     []string
	problem string
	last    string // the last actions of the engine
}

// heldLease is one lease as the engine and the model identify it.
type heldLease struct {
	engine, model string
	id            engine.ID
	key           string
}

func newPlayer(b *bed, start time.Time) *player {
	if b.h.Clock != nil {
		b.h.Clock.Set(start)
	}
	p := &player{
		b: b, ctx: b.Context(), e: b.h.Open(b.T), clock: b.h.Clock,
		queues: []string{b.queueName("t-1"), b.queueName("t-2")}, queueOf: map[engine.ID]string{}, swept: map[engine.ID]bool{},
		revision: map[string]string{}, older: map[string]string{}, rated: map[string]engine.Settings{},
	}
	p.caller = p.ctx
	p.caps = p.e.Capabilities()
	p.m = NewModel(func() time.Time { return p.now })
	p.tick()
	p.base = p.now.Truncate(time.Second)
	return p
}

// tick sets the model's clock by the engine's.
func (p *player) tick() {
	if p.clock != nil {
		p.now = p.clock.Now()
		return
	}
	g, err := p.e.Lease(p.ctx, []engine.Want{{Queue: p.queues[0] + "-clock", Max: 1}})
	if err != nil {
		p.failf("lease: %v", err)
	}
	p.now = g.Now
}

// apart waits until the engine's own clock is past the millisecond of the last step. A history
// orders what ended in one millisecond by id, and the model's clock may put it into two.
func (p *player) apart() {
	if p.clock != nil {
		return
	}
	p.tick()
	for last := p.now.UnixMilli(); p.now.UnixMilli() == last && p.problem == ""; {
		p.tick()
	}
}

func pick[T any](from []T, n uint32) T { return from[int(n)%len(from)] }

// pickOr is pick, or other if there is none.
func pickOr[T any](from []T, n uint32, other T) T {
	if len(from) == 0 {
		return other
	}
	return pick(from, n)
}

func (p *player) queue(n uint32) string { return pick(p.queues, n>>1) }

func (p *player) key(n uint32) string {
	if !p.caps.Keys {
		return ""
	}
	if p.armed || p.faultPending {
		n = cmp.Or(n%(p.keys()+1), 1) // so that the message can be found by its key
	}
	return keyOf(n % (p.keys() + 1))
}

func (p *player) keys() uint32 { return uint32(cmp.Or(p.b.h.Keys, 4)) }

// keyOf is the n-th key, counted from 1; 0 is no key.
func keyOf(n uint32) string {
	if n == 0 {
		return ""
	}
	if n <= 26 {
		return string(rune('a' + n - 1))
	}
	return fmt.Sprint("k", n)
}

// young returns the number of newest messages from which most calls by id pick.
func (p *player) young() int { return max(12, 3*int(p.keys())) }

// ref picks a message by id or by key.
func (p *player) ref(n, by uint32) engine.Ref {
	if len(p.ids) > 0 && (by%2 == 0 || !p.caps.Keys) {
		// Usually a recent one, because the old ones are gone.
		id := p.ids[len(p.ids)-1-int(n)%min(len(p.ids), p.young())]
		return engine.Ref{Queue: p.queueOf[id], ID: id}
	}
	if !p.caps.Keys {
		return engine.Ref{Queue: p.queue(by), ID: 1 << 62}
	}
	return engine.Ref{Queue: p.queue(by), Key: cmp.Or(p.key(n), "a")}
}

// inState sometimes restricts a ref to a state.
func (p *player) inState(ref engine.Ref, n uint32) engine.Ref {
	if p.caps.IfState && n%3 == 0 {
		ref.IfState = engine.Scheduled + engine.State(n>>2%4)
	}
	return ref
}

// claimed sometimes restricts the ref of a claim to a state.
func (p *player) claimed(ref engine.Ref, n uint32) engine.Ref {
	if p.caps.ClaimIf && n%3 > 0 {
		ref.IfState = engine.Scheduled + engine.State(n>>2%4)
	}
	return ref
}

// bounded sometimes bounds a list, or reverses it.
func (p *player) bounded(q engine.ListQuery, n, m uint32) engine.ListQuery {
	if !p.caps.Range {
		return q
	}
	q.Newest = n%2 == 0
	bound := func(n uint32) time.Time {
		if p.clock == nil {
			return p.base.Add(pick([]time.Duration{-150, 5 * 60, 35 * 60}, n) * time.Minute) // far from the times of all messages
		}
		return p.now.Add(pick([]time.Duration{-1, 1}, n>>8)*pick(spans, n) + pick([]time.Duration{0, 0, 1, -1}, n>>16))
	}
	if n>>1%2 == 0 {
		q.From = bound(n >> 2)
	}
	if m%2 == 0 {
		q.To = bound(m >> 1)
	}
	return q
}

var spans = []time.Duration{
	0, 0, 0, time.Millisecond, 250 * time.Millisecond, time.Second, 10 * time.Second, 59 * time.Second,
	time.Minute, 10 * time.Minute, 3 * time.Hour, 50 * time.Hour,
}

func (p *player) when(n, how uint32) engine.When {
	if p.clock == nil {
		return engine.When{At: p.base.Add(pick([]time.Duration{-3, -2, -2, -1, 30, 40, 40, 50}, n) * time.Hour)}
	}
	d := pick(spans, n)
	switch how % 4 {
	case 0:
		return engine.When{At: p.now.Add(d)}
	case 1:
		return engine.When{At: p.now.Add(-d)}
	default:
		return engine.When{In: d}
	}
}

func (p *player) ttr(n uint32) time.Duration {
	if p.clock == nil {
		return pick([]time.Duration{12, 24}, n) * time.Hour
	}
	return pick([]time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour}, n)
}

// worker returns the name of a worker; "": none.
func (p *player) worker(n uint32) string {
	return pick([]string{"", "w-1", "host.example:42", strings.Repeat("wörker ", 12)}, n)
}

func (p *player) message(n []uint32) engine.Message {
	m := engine.Message{
		Queue: p.queue(n[0]), Key: p.key(n[0]), Due: p.when(n[1], n[2]), OnConflict: engine.Conflict(n[3] % 5),
		Content: engine.Content{Body: fmt.Appendf(nil, "%d", n[4]), ContentType: "text/plain"},
		Terms: engine.Terms{
			Priority: pick([]*uint32{nil, nil, new(uint32(7))}, n[4]), MaxAttempts: pick([]uint32{1, 2, 3, 0}, n[5]), TTR: p.ttr(n[5] >> 8),
			Backoff:     pick([][]time.Duration{{time.Second}, {time.Millisecond, time.Minute}, {10 * time.Second, time.Second, time.Hour}}, n[5]>>16),
			ExpireAfter: pick([]time.Duration{0, 0, engine.Never, time.Second, time.Minute, 2 * time.Hour}, n[6]),
			Remember:    pick([]time.Duration{0, 0, 0, engine.Never, 10 * time.Second, 10 * time.Minute, 50 * time.Hour}, n[6]>>8),
			Isolate:     pick([]*bool{nil, nil, new(false)}, n[6]>>12),
		},
	}
	if l, ok := p.recent(n[7]); ok && l.key != "" && n[7]>>8%4 == 0 {
		m.Queue, m.Key, m.OnConflict, m.Token = p.queueOf[l.id], l.key, engine.Replace, l.engine
	}
	if n[4]%3 == 0 {
		m.Headers = []engine.Header{{Name: "n", Value: fmt.Sprint(n[4])}}
	}
	if p.clock == nil {
		m.Backoff = []time.Duration{100 * time.Hour, 200 * time.Hour}
		m.ExpireAfter = pick([]time.Duration{0, 1000 * time.Hour}, n[6])
		m.Remember = pick([]time.Duration{0, 0, 1000 * time.Hour}, n[6]>>8)
	}
	s := p.m.settings[m.Queue]
	if len(s.Defaults.Backoff) > 0 && n[6]>>16%2 == 0 {
		m.Backoff = nil
	}
	if s.Defaults.TTR > 0 && n[6]>>17%2 == 0 {
		m.TTR = 0
	}
	if p.caps.Shares {
		m.Isolate = new(false) // alone in a grant means alone for each part of a queue
	}
	m.Terms = p.b.able(m.Terms)
	return m
}

// recent picks one of the last leases.
func (p *player) recent(n uint32) (l heldLease, ok bool) {
	if len(p.leases) == 0 {
		return l, false
	}
	return p.leases[len(p.leases)-1-int(n)%min(len(p.leases), 6)], true
}

// modelled returns the messages with the model's tokens.
func (p *player) modelled(msgs []engine.Message) []engine.Message {
	msgs = slices.Clone(msgs)
	for i := range msgs {
		for _, l := range p.leases {
			if l.engine == msgs[i].Token {
				msgs[i].Token = l.model
			}
		}
	}
	return msgs
}

// play applies one step.
func (p *player) play(s step) {
	if s.kind == "settle" || s.kind == "cancel" {
		p.apart()
	}
	if p.tick(); p.problem != "" {
		return
	}
	switch {
	case p.fault != nil && p.fault.Anywhere:
		p.shake(s)
	case p.fault != nil && p.fault.strikes(s):
		p.suffer(s)
	default:
		p.call(s)
	}
}

func (p *player) do(s step) {
	defer p.unlisted()
	n := s.n
	switch s.kind {
	case "push":
		p.push([]engine.Message{p.message(n[:])}, false)
	case "push many", "push atomic":
		if s.kind == "push atomic" && !p.caps.Atomic {
			return
		}
		var msgs []engine.Message
		for i := range 2 + n[7]%3 {
			for j := range n {
				n[j] = n[j]*2_654_435_761 + i
			}
			m := p.message(n[:])
			if (s.kind == "push atomic" || p.armed || p.faultPending) && slices.ContainsFunc(msgs, func(o engine.Message) bool { return o.Queue == m.Queue && o.Key == m.Key }) {
				continue // a message that expires on arrival may or may not conflict with the next
			}
			msgs = append(msgs, m)
		}
		p.push(msgs, s.kind == "push atomic")
	case "lease":
		wants := []engine.Want{{Queue: p.queue(n[0]), Max: 1 + int(n[1]%4), TTR: p.ttr(n[2]), Remote: p.remote(n[6]), Worker: p.worker(n[4])}}
		if n[3]%2 == 0 {
			wants[0].TTR = 0
		}
		if n[5]%3 == 0 && !p.caps.LeaseWait { // a waiter elsewhere asks for each taker by itself
			wants[0].Takers = []engine.Taker{{Worker: p.worker(n[1]), Max: 1 + int(n[4]%2)}, {Worker: p.worker(n[6]), Max: 1}}
		}
		if n[3]%5 == 0 && !p.armed && !p.faultPending { // if one want fails, the other may get its messages
			wants = append(wants, engine.Want{Queue: p.queue(n[4]), Max: 1 + int(n[5]%4), Remote: p.remote(n[7]), Worker: p.worker(n[1])})
		}
		p.lease(wants)
	case "settle":
		p.settle(n[:])
	case "claim":
		p.claim(p.claimed(p.ref(n[0], n[1]), n[3]), engine.Want{TTR: p.ttr(n[2]), Remote: p.remote(n[6]), Worker: p.worker(n[4])})
	case "cancel":
		ref := p.inState(p.ref(n[0], n[1]), n[2])
		ref.By = p.worker(n[3])
		p.cancel(ref)
	case "reschedule":
		p.reschedule(p.inState(p.ref(n[0], n[1]), n[4]), p.when(n[2], n[3]))
	case "get":
		p.get(p.ref(n[0], n[1]))
	case "peek":
		p.peek([]string{p.queue(n[0]), p.queue(n[1]), p.queues[0] + "-clock"})
	case "find":
		p.queuesOf([]engine.ID{pickOr(p.ids, n[0], 0), pickOr(p.ids, n[1], 1), 1 << 62, 0})
	case "list":
		p.list(p.bounded(engine.ListQuery{Queue: p.queue(n[0]), State: engine.Scheduled + engine.State(n[1]%5), Limit: 1 + int(n[2]%5)}, n[3], n[4]))
	case "count":
		if p.fault == nil && n[1]%2 == 0 {
			p.touch(p.queue(n[0]))
		}
		p.count(p.queue(n[0]))
	case "forecast":
		p.forecast(p.queue(n[0]), pick([]time.Duration{time.Minute, 5 * time.Minute, time.Hour}, n[1]))
	case "pause":
		p.pause(p.queue(n[0]), pick(spans, n[1]))
	case "resume":
		p.resume(p.queue(n[0]))
	case "purge":
		p.purge(p.queue(n[0]), engine.PurgeAlso(n[1]%4))
	case "redrive":
		p.redrive(p.queue(n[0]), n[1:4])
	case "time":
		if p.clock != nil {
			d := pick(spans[3:], n[0])
			p.logf("%v pass", d)
			p.clock.Advance(d)
			p.passed()
		}
	case "back":
		p.back(pick(spans[3:], n[0]))
	case "reopen":
		if p.b.h.Reopen != nil && p.caps.RemoteLeases {
			p.logf("reopen")
			p.e = p.b.h.Reopen(p.b.T, p.e)
			p.restart(p.m)
			p.refill()
		}
	case "crash":
		p.faultPending = false
		p.logf("crash")
		p.e = p.b.h.Crash(p.b.T, p.e)
		p.crashed(p.m)
		p.refill()
	case "chore":
		p.chore(n)
	case "configure":
		p.configure(p.queue(n[0]), n[1:])
	case "settings":
		p.settings(p.queue(n[0]))
	}
}
