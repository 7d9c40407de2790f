package redisengine

import (
	"context"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Settle ends or extends leases, with one script for each shard, in parallel.
func (e *Engine) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	if err := e.calls.Enter(ctx, "settle"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	return e.settle(ctx, s)
}

// lost is the error of a settlement that came too late.
func lost(queue string, id engine.ID) error {
	return engine.Refuse("settle", engine.Ref{Queue: queue, ID: id}, engine.ErrLeaseLost)
}

// settle is Settle without the bookkeeping of a call.
func (e *Engine) settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	settled := make([]engine.Settled, len(s))
	tokens := make([]codec.Token, len(s))
	queues := make([]*queue, len(s))
	b := batch{e: e, room: 1}
	var which []int // those with a well-formed token
	var prints []fingerprint
	for i := range s {
		if err := s[i].Check(); err != nil {
			settled[i].Err = err
			continue
		}
		t, ok := codec.ParseToken(s[i].Token)
		if !ok {
			settled[i].Err = lost("", 0)
			continue
		}
		if e.forget {
			settled[i], queues[i] = e.forgotten(ctx, &s[i], t), e.known(fingerprint(t.Queue))
			continue
		}
		tokens[i] = t
		which, prints = append(which, i), append(prints, fingerprint(t.Queue))
	}
	found, err := e.queuesOf(ctx, prints)
	for _, i := range which {
		t := tokens[i]
		q := found[fingerprint(t.Queue)]
		switch {
		case q == nil && err != nil:
			settled[i].Err = fault("settle", "", err)
		case q == nil || q.ofID(t.ID) == nil:
			settled[i].Err = lost("", t.ID)
		default:
			queues[i] = q
			e.addSettlement(&b, q.ofID(t.ID), i, &s[i], t, "")
		}
	}
	type retry struct {
		item  int
		delay string
	}
	var again []retry // those that need a backoff first
	done := func(c *call, values []rueidis.RedisMessage, now int64, err error) {
		gone := err == nil && len(values) == 1 // all messages are gone
		if err == nil && !gone && len(values) != 1+len(c.items) {
			err = errAnswer
		}
		for n, i := range c.items {
			if err != nil {
				settled[i] = engine.Settled{Err: fault("settle", c.shard.queue, err)}
				continue
			}
			if gone {
				settled[i] = engine.Settled{State: engine.Gone}
				continue
			}
			var retried *engine.Info
			if settled[i], retried = readSettled(&values[1+n], c.shard.queue, tokens[i].ID, now); retried != nil {
				again = append(again, retry{i, span(retried.RetryDelay(retried.Attempt))})
			}
			if settled[i].State == engine.Leased && c.shard.soon(settled[i].Until.UnixMilli()) {
				e.watchers.Hint(c.shard.queue)
			}
		}
		if err == nil {
			e.soon(c.shard, &values[0])
		}
	}
	b.runSettlements(ctx, done)
	if len(again) > 0 {
		b = batch{e: e, room: 1}
		for _, r := range again {
			i := r.item
			e.addSettlement(&b, queues[i].ofID(tokens[i].ID), i, &s[i], tokens[i], r.delay)
		}
		again = nil
		b.runSettlements(ctx, done)
	}
	e.held.Settled(s, settled)
	for i, q := range queues {
		if q != nil {
			settled[i].Queue = q.name
		}
	}
	return settled, nil
}

// addSettlement adds a settlement to a batch. delay is the backoff of a retry, or "".
func (e *Engine) addSettlement(b *batch, sh *shard, item int, s *engine.Settlement, t codec.Token, delay string) {
	arg, reason := "", ""
	l, held := e.held.Get(s.Token)
	switch s.Do {
	case engine.Retry:
		reason = s.KeptReason()
		switch {
		case s.When != nil:
			arg = when(*s.When)
		case delay != "":
			arg = delay
		case held:
			policy := engine.Policy{Backoff: l.backoff}
			arg = span(policy.RetryDelay(l.attempt))
		}
	case engine.Snooze:
		arg = when(*s.When)
	case engine.Bury:
		reason = s.KeptReason()
	case engine.Extend:
		arg = ttrArg(s.TTR)
	}
	nonce := l.secret
	if !held {
		nonce = hex.EncodeToString(t.Nonce[:])
	}
	c := b.call(sh, "", len(reason))
	c.items = append(c.items, item)
	c.args = append(c.args, member(t.ID), nonce)
	how := byte(s.Do - engine.Ack)
	if s.Do != engine.Ack {
		c.args = append(c.args, arg, reason)
	}
	if s.Priority != nil && s.Do != engine.Ack && s.Do != engine.Extend {
		how += prioritizes
		c.args = append(c.args, strconv.FormatUint(uint64(*s.Priority), 10))
	}
	c.do(how)
}

// prioritizes is added to an action with a new priority: see lua/settle.lua.
const prioritizes = 8

// runSettlements runs a batch that addSettlement has filled.
func (b *batch) runSettlements(ctx context.Context, done func(c *call, values []rueidis.RedisMessage, now int64, err error)) {
	for _, c := range b.calls {
		c.args[ahead] = c.hows()
	}
	b.run(ctx, settleScript, done)
}

// readSettled reads a script's answer to one settlement. retried is set if the script needs
// the backoff of this message.
func readSettled(v *rueidis.RedisMessage, queue string, id engine.ID, now int64) (s engine.Settled, retried *engine.Info) {
	if code, err := v.AsInt64(); err == nil {
		if code == 1 {
			return engine.Settled{State: engine.Gone}, nil
		}
		return engine.Settled{Err: lost(queue, id)}, nil
	}
	if part, err := v.ToArray(); err == nil && len(part) >= 2 {
		mark, _ := part[0].ToString()
		n, _ := part[1].AsInt64()
		at := time.UnixMilli(n).UTC()
		switch mark {
		case "D":
			return engine.Settled{State: engine.Dead}, nil
		case "L":
			return engine.Settled{State: engine.Leased, Until: at}, nil
		case "W":
			return engine.Settled{State: state('W', n, now), Until: at}, nil
		case "B":
			i := &engine.Info{Attempt: uint32(n)}
			if record, err := part[len(part)-1].AsBytes(); err == nil && decodeRecord(record, nil, i) == nil {
				return s, i
			}
		}
	}
	return engine.Settled{Err: fault("settle", queue, errAnswer)}, nil
}

// forgotten answers a settlement of a message that was deleted when it was taken.
func (e *Engine) forgotten(ctx context.Context, s *engine.Settlement, t codec.Token) engine.Settled {
	switch s.Do {
	case engine.Ack:
		return engine.Settled{State: engine.Gone}
	case engine.Extend:
		now, err := e.now(ctx)
		if err != nil {
			return engine.Settled{Err: fault("settle", "", err)}
		}
		return engine.Settled{State: engine.Leased, Until: now.Add(max(s.TTR, time.Second)).Truncate(time.Millisecond)}
	}
	return engine.Settled{Err: &engine.Error{Op: "settle", ID: t.ID, Err: engine.ErrLeaseLost,
		Hint: "the store was opened with at_most_once, so the message was deleted when it was taken"}}
}
