package redisengine

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Lease leases due messages. It asks only shards that may have some. If several shards of a
// queue do, it first compares their candidates, so that the order holds across shards.
func (e *Engine) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	if err := e.calls.Enter(ctx, "lease"); err != nil {
		return engine.Grant{}, err
	}
	defer e.calls.Leave()
	visits := make([]*visit, len(wants))
	for i, want := range wants {
		visits[i] = &visit{e: e, want: want, q: e.queue(want.Queue)}
		visits[i].granted.Err = want.Check()
	}
	e.recheck(ctx, visits)
	for _, round := range rounds(visits) {
		for _, v := range round {
			v.begin()
		}
		e.visit(round)
	}
	e.noteLeased(ctx, visits)
	now, err := e.now(ctx)
	if err != nil {
		return engine.Grant{}, fault("lease", "", err)
	}
	grant := engine.Grant{Now: now, Queues: make([]engine.Granted, len(wants))}
	for _, v := range visits {
		if v.us > grant.Now.UnixMicro() {
			grant.Now = time.UnixMicro(v.us).UTC()
		}
	}
	for i, v := range visits {
		grant.Queues[i] = v.conclude(grant.Now)
	}
	return grant, nil
}

// rounds groups visits so that visits of one queue run one after another: each gets what the
// earlier ones leave.
func rounds(visits []*visit) (rounds [][]*visit) {
	before := make(map[*queue]int, len(visits))
	for _, v := range visits {
		if v.granted.Err != nil {
			continue
		}
		n := before[v.q]
		before[v.q]++
		if n == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[n] = append(rounds[n], v)
	}
	return rounds
}

// noteLeased registers the queues that messages were leased from. The process that pushed
// may have died before it registered the queue, and a settlement may know only the
// fingerprint.
func (e *Engine) noteLeased(ctx context.Context, visits []*visit) {
	var queues []*queue
	for _, v := range visits {
		if len(v.granted.Messages) > 0 {
			queues = append(queues, v.q)
		}
	}
	e.note(ctx, queues...)
}

// taken is what the process remembers of a lease of its own. A settlement with it needs no
// round trip for the backoff, and shows the lease's secret: see newSecret.
type taken struct {
	attempt uint32
	backoff []time.Duration
	secret  string
}

func takenWith(l *engine.Lease, secret string) taken {
	return taken{l.Attempt, slices.Clone(l.Backoff), secret}
}

// leased reads a leased message from the four values of a script's answer.
func (e *Engine) leased(q *queue, values []rueidis.RedisMessage, now int64) (engine.Lease, error) {
	i, p, err := readMessage(q.name, values, now)
	if err != nil {
		return engine.Lease{}, err
	}
	i.Failures = nil
	t := codec.Token{Queue: uint64(q.print), ID: i.ID, Nonce: sealed(p.secret, i.ID)}
	return engine.Lease{Info: i, Token: t.String()}, nil
}

// readMessage reads a message from the four values of a script's answer.
func readMessage(queue string, values []rueidis.RedisMessage, now int64) (engine.Info, past, error) {
	var part [4][]byte
	for i := range part {
		var err error
		if part[i], err = values[i].AsBytes(); err != nil {
			return engine.Info{}, past{}, errAnswer
		}
	}
	id := idOf(string(part[0]))
	if id == 0 {
		return engine.Info{}, past{}, errAnswer
	}
	return message(queue, id, part[1], part[2], part[3], now)
}

// Claim leases the message of ref if it is due, or in ref.IfState.
func (e *Engine) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	var l engine.Lease
	err := e.refer(ctx, "claim", ref, func(s *shard, id, key string) error {
		mode, secret := "lease", newSecret()
		if e.forget {
			mode = "forget"
		}
		if ref.IfState != engine.Gone {
			mode += stateArg(ref.IfState)
		}
		a := e.ask1(ctx, claimScript, s, id, key, ttrArg(want.TTR), secret, mode, want.Worker)
		if a.err != nil {
			return a.err
		}
		values, err := outcome(a.values)
		if err == engine.ErrNotDue {
			var due time.Time // zero: it waits for a resume
			if ms, err := a.values[1].AsInt64(); err == nil {
				due = time.UnixMilli(ms)
			}
			return engine.RefuseNotDue(ref, due)
		}
		if err == engine.ErrStale {
			is, _ := a.values[1].AsInt64()
			return engine.RefuseClaimIf(ref, engine.State(is))
		}
		if err == engine.ErrLimit {
			var until time.Time // zero: it waits for a lease to end
			if ms, err := a.values[1].AsInt64(); err == nil {
				until = time.UnixMilli(ms).UTC()
			}
			return engine.RefuseClaim(ref, until)
		}
		if err != nil {
			return err
		}
		q := e.queue(ref.Queue)
		if l, err = e.leased(q, values, a.now); err != nil {
			return err
		}
		if !want.Remote && !e.forget {
			e.held.Add(&l, takenWith(&l, secret), time.UnixMilli(a.now))
		}
		e.note(ctx, q)
		if s.soon(l.Deadline.UnixMilli()) {
			e.watchers.Hint(ref.Queue)
		}
		return nil
	})
	return l, err
}
