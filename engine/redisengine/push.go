package redisengine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/internal/calls"
)

// Push stores each message or applies its conflict policy, with one script for each shard,
// in parallel. If a shard cannot be reached, its messages fail and the others are stored.
func (e *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if err := e.calls.Enter(ctx, "push"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	results, err := e.push(ctx, msgs, idTries)
	if err == nil {
		e.held.Replaced(msgs, results)
	}
	return results, err
}

// idTries is how many ids are tried for a message until one is new.
const idTries = 16

// exchange is the conflict policy of a push with a token, as lua/push.lua reads it.
const exchange = byte(engine.Rearm) + 1

// push is Push without the bookkeeping of a call.
func (e *Engine) push(ctx context.Context, msgs []engine.Message, tries int) ([]engine.PushResult, error) {
	until := e.patient()
	created, err := e.now(ctx)
	if err != nil {
		return nil, fault("push", "", err)
	}
	results := make([]engine.PushResult, len(msgs))
	b := batch{e: e, unique: true, room: 4, until: until}
	keyless := int(e.spread.Add(1))
	aims := e.aim(ctx, msgs)
	var noIDs error   // the first failure to get an id
	var full []*shard // whose server has no memory
	for i := range msgs {
		m, q, known := &msgs[i], aims[i].queue, aims[i].known
		if len(m.Body) > maxBody {
			results[i].Err = &engine.Error{Op: "push", Queue: m.Queue, Key: m.Key, Err: engine.ErrTooLarge,
				Hint: fmt.Sprintf("a body has at most %d bytes in Redis; keep a larger one elsewhere and send its address", maxBody)}
			continue
		}
		how, lease := byte(m.OnConflict), ""
		if m.Token != "" {
			t, ok := codec.ParseToken(m.Token)
			if !ok || fingerprint(t.Queue) != q.print {
				results[i].Err = engine.Refuse("push", engine.Ref{Queue: m.Queue, Key: m.Key}, engine.ErrLeaseLost)
				continue
			}
			how, lease = exchange, member(t.ID)+hex.EncodeToString(t.Nonce[:])
		}
		s := q.shards[keyless%len(q.shards)]
		if m.Key != "" {
			s = q.ofKey(m.Key)
		}
		if noIDs != nil {
			results[i].Err = fault("push", m.Queue, noIDs)
			continue
		}
		id, err := e.id(ctx, s.n, until)
		if err != nil {
			if noIDs = err; isFull(err) {
				full = append(full, s)
			}
			results[i].Err = fault("push", m.Queue, err)
			continue
		}
		results[i].ID = id
		policy := m.Resolve(known.defaults())
		record, large := encode(m, &policy, created.UnixMicro())
		c := b.call(s, m.Key, len(record)+len(large))
		c.items, c.known = append(c.items, i), known
		c.dues = appendDue(c.dues, m.Due)
		c.do(record[0] | how<<3)
		c.args = append(c.args, member(id), m.Key, rueidis.BinaryString(record))
		if large != nil {
			c.args = append(c.args, rueidis.BinaryString(large))
		}
		if lease != "" {
			c.args = append(c.args, lease)
		}
	}
	for _, c := range b.calls {
		c.args[ahead], c.args[ahead+1] = strconv.Itoa(len(c.items)), rueidis.BinaryString(c.dues)
		c.args[ahead+2] = c.hows()
		c.args[ahead+3] = c.known.mark()
	}
	var again []int // to push again: the id is in use, or the settings differ
	b.run(ctx, pushScript, func(c *call, values []rueidis.RedisMessage, now int64, err error) {
		if err == nil && len(values) != 1+len(c.items) {
			err = errAnswer
		}
		var other *differs
		if errors.As(err, &other) && tries > 1 {
			again = append(again, c.items...)
			if err = e.reconcile(ctx, aims[c.items[0]].queue, c.shard, other.is); err == nil {
				return
			}
			again = again[:len(again)-len(c.items)]
		}
		if isFull(err) {
			full = append(full, c.shard)
		}
		for n, i := range c.items {
			if err != nil {
				results[i] = engine.PushResult{Err: fault("push", msgs[i].Queue, err)}
				continue
			}
			if e.pushed(&results[i], &msgs[i], &values[1+n], now, c.known) == errTaken {
				again = append(again, i)
			}
		}
		if err == nil {
			e.soon(c.shard, &values[0])
		}
	})
	e.shed(ctx, full, until)
	if len(again) > 0 && tries > 1 {
		slices.Sort(again)
		repeated := make([]engine.Message, len(again))
		for n, i := range again {
			repeated[n] = msgs[i]
			if errors.Is(results[i].Err, errTaken) {
				e.drop(results[i].ID)
			}
		}
		more, err := e.push(ctx, repeated, tries-1)
		for n, i := range again {
			if err != nil {
				results[i] = engine.PushResult{Err: err}
			} else {
				results[i] = more[n]
			}
		}
	}
	return results, nil
}

// shed drops some of the history on shards, so that later pushes find memory. It does not
// matter whether it succeeds.
func (e *Engine) shed(ctx context.Context, shards []*shard, until calls.Bound) {
	if len(shards) == 0 {
		return
	}
	reqs := make([]request, len(shards))
	for i, s := range shards {
		reqs[i] = request{script: shedScript, shard: s, args: with()}
	}
	e.ask(ctx, reqs, until)
}

// aim is the shard and the settings that apply to a message.
type aim struct {
	queue *queue
	known *configured
}

// aim returns the aim of each message. It registers new queues.
func (e *Engine) aim(ctx context.Context, msgs []engine.Message) []aim {
	aims := make([]aim, len(msgs))
	var distinct []*queue
	for name, items := range calls.GroupBy(len(msgs), func(i int) string { return msgs[i].Queue }) {
		q := e.queue(name)
		distinct = append(distinct, q)
		to := aim{q, q.known.Load()}
		for _, i := range items {
			aims[i] = to
		}
	}
	e.note(ctx, distinct...)
	return aims
}

// errTaken says that the id of a new message is in use. This happens when a failover has
// lost the reservation of a block and the new master's clock is behind.
var errTaken = fmt.Errorf("%w: Redis has lost its reservation of ids, and its clock is behind", engine.ErrUnavailable)

// pushed reads a script's answer for one message. It returns errTaken if the message needs
// another id.
func (e *Engine) pushed(r *engine.PushResult, m *engine.Message, v *rueidis.RedisMessage, now int64, known *configured) error {
	if due, err := v.AsInt64(); err == nil {
		r.Outcome, r.Due, r.State = engine.Created, time.UnixMilli(due).UTC(), state('W', due, now)
		return nil
	}
	met, err := v.ToArray()
	if err == nil && len(met) == 2 {
		*r = remembered(m, met)
		return nil
	}
	if err != nil || len(met) != 4 {
		*r = engine.PushResult{Err: fault("push", m.Queue, errAnswer)}
		return nil
	}
	done, _ := met[0].ToString()
	id, _ := met[1].ToString()
	due, _ := met[2].AsInt64()
	mark, _ := met[3].ToString()
	if mark == "" {
		mark = "W"
	}
	*r = engine.PushResult{ID: idOf(id), Due: time.UnixMilli(due).UTC(), State: state(mark[0], due, now)}
	ref := engine.Ref{Queue: m.Queue, Key: m.Key}
	switch done {
	case "kept":
		r.Outcome = engine.Kept
	case "replaced":
		r.Outcome = engine.Replaced
	case "exists":
		r.Err = engine.Refuse("push", ref, engine.ErrExists)
	case "full":
		*r = engine.PushResult{Err: engine.RefusePending(ref, known.MaxPending)}
	case "lost":
		*r = engine.PushResult{Err: engine.Refuse("push", ref, engine.ErrLeaseLost)}
	case "leased":
		r.Err = engine.Refuse("push", ref, engine.ErrLeased)
	case "taken":
		r.Err = &engine.Error{Op: "push", Queue: m.Queue, Key: m.Key, Err: errTaken, Hint: "correct the clock of the Redis server, and try again"}
		return errTaken
	}
	return nil
}
