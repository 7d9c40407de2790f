package logengine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine/internal/recent"
)

// mostAtomic is how many bytes messages may have together that are one entry of the log: half of what
// that may have.
func (e *Engine) mostAtomic() int { return e.cfg.tune.entry / 2 }

// refuseAtomic refuses messages that have too many bytes.
func (e *Engine) refuseAtomic(bytes int) error {
	most := e.mostAtomic()
	if bytes <= most {
		return nil
	}
	return &engine.Error{Op: "push", Err: engine.ErrTooLarge, Hint: fmt.Sprintf("%d bytes are to be kept as one; at most %d are allowed", bytes, most)}
}

// PushAtomic keeps all messages or none, also over several queues: they are one entry of the log.
// Those that stood in the way have an error in the results. Together they may have 128 MiB, with the
// bodies of those that are rearmed, else it is an ErrTooLarge.
func (e *Engine) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	bytes := 0
	for i := range msgs {
		bytes += len(msgs[i].Body) + len(msgs[i].Key) + 256
	}
	if err := e.refuseAtomic(bytes); err != nil {
		return nil, err
	}
	results := make([]engine.PushResult, len(msgs))
	var first error
	err := e.do(ctx, "push", func(c *call) error {
		if err := e.admit(ctx); err != nil {
			return err
		}
		hashes := make([]sought, len(msgs))
		return c.step(func() error {
			clear(results)
			var err error
			first, err = c.rehearse(msgs, bytes, hashes, results)
			if err != nil || first != nil {
				return err
			}
			for i := range msgs {
				if results[i], err = c.push(&msgs[i], &hashes[i]); err != nil {
					return err // which cannot be: all that is needed was read
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return results, first
}

// name is a key of a queue.
type name struct{ queue, key string }

// seat is what stands in the way of a push of a key.
type seat struct {
	state engine.State // Gone: nothing does
	due   int64
	bytes int // of its content, unless Finished

	policy *engine.Policy // unless Finished
	ending engine.Ending  // when Finished
	ended  int64

	lingers bool // it has expired as it was pushed, and counts until it is met
}

// rehearsal is what pushes so far would have made.
type rehearsal struct {
	seats map[name]*seat
	live  map[*queue]int64 // how many more live messages than there are
	bytes int
	news  int64 // of all queues, with those that expire at once
}

// rehearse finds out whether any push would fail, and looks up what they need. It returns why the
// first one would.
func (c *call) rehearse(msgs []engine.Message, bytes int, hashes []sought, results []engine.PushResult) (first, err error) {
	r := rehearsal{bytes: bytes, seats: make(map[name]*seat), live: make(map[*queue]int64)}
	var lack error
	for i := range msgs {
		refused, err := c.rehearseOne(&r, &msgs[i], &hashes[i], &results[i])
		if err == errLack {
			lack = err
			continue
		}
		if err != nil {
			return nil, err
		}
		results[i].Err = refused
		first = cmp.Or(first, refused)
	}
	if lack != nil || first != nil {
		return first, lack
	}
	if most := c.e.cfg.MaxPending; most > 0 && c.e.pending()+r.news > most {
		for i := range results {
			results[i].Err = engine.Refuse("push", engine.Ref{Queue: msgs[i].Queue, Key: msgs[i].Key}, engine.ErrLimit)
			first = cmp.Or(first, results[i].Err)
		}
	}
	return first, nil
}

// seatOf is what stands in the way of a key now.
func (c *call) seatOf(q *queue, key string, hash *sought, result *engine.PushResult) (s seat, err error) {
	m, ok, err := c.byKey(q, []byte(key), hash)
	if err != nil {
		return s, err
	}
	if ok && m.past(c.ms) {
		if err := c.needKey(&m); err != nil {
			return s, err
		}
		c.expire(&m)
		ok = false
	}
	// Who has the key may be past its expiry when a later item asks: so what else there may be of
	// it in runs is read now.
	for _, a := range []recent.Area{recent.Live, recent.Finished} {
		if _, err := c.spotsOfKey(q, a, []byte(key), hash); err != nil {
			return s, err
		}
	}
	if ok {
		if err := c.needContent(&m); err != nil { // what takes its place needs it
			return s, err
		}
		policy := m.Policy
		*result = c.result(&m, 0, nil)
		return seat{state: m.state(c.ms), due: m.Due, bytes: len(m.content), policy: &policy}, nil
	}
	t, left, err := c.finished(q, []byte(key), hash)
	if err != nil || !left || t.forgotten <= c.ms {
		return s, err
	}
	*result = engine.PushResult{ID: t.id, Due: instant(t.Due), State: engine.Finished, Ending: t.Ending, Ended: instant(t.Ended)}
	return seat{state: engine.Finished, due: t.Due, ending: t.Ending, ended: t.Ended}, nil
}

// rehearseOne says why one push would fail; nil: it would not.
func (c *call) rehearseOne(r *rehearsal, in *engine.Message, hash *sought, result *engine.PushResult) (refused, err error) {
	if err := c.e.refuseBody(in); err != nil {
		return err, nil
	}
	q, err := c.visit(in.Queue, true)
	if err != nil {
		return nil, err
	}
	c.see(q)
	s := new(seat)
	if in.Key != "" {
		n := name{q.name, in.Key}
		if r.seats[n] == nil {
			if *s, err = c.seatOf(q, in.Key, hash, result); err != nil {
				return nil, err
			}
			r.seats[n] = s
		}
		s = r.seats[n]
		if s.lingers {
			s.lingers = false
			r.live[q]--
		}
	}
	created := s.state == engine.Gone || s.state == engine.Finished && passes(in.OnConflict)
	if created {
		if x := q.settings; x != nil && x.MaxPending > 0 && q.pending()+r.live[q] >= x.MaxPending {
			*result = engine.PushResult{}
			return engine.RefusePending(engine.Ref{Queue: q.name, Key: in.Key}, x.MaxPending), nil
		}
		r.news++
		r.live[q]++
	} else if refused := s.refusal(q, in); refused != nil || in.OnConflict == engine.Keep {
		return refused, nil
	}
	if created || in.OnConflict != engine.KeepDue {
		s.due = in.Due.Resolve(c.now)
	}
	if created || in.OnConflict != engine.Rearm {
		policy := in.Resolve(q.defaults())
		s.policy, s.bytes = &policy, len(in.Body)
	} else if r.bytes += s.bytes; r.bytes > c.e.mostAtomic() {
		return nil, c.e.refuseAtomic(r.bytes)
	}
	s.state = engine.Scheduled                    // or ready
	if at := expiry(s.due, s.policy); at < c.ms { // gone before the next is pushed
		s.state, s.ending, s.ended, s.lingers = engine.Gone, engine.Expired, at, true
		if at+millis(s.policy.Remember) > c.ms {
			s.state = engine.Finished
		}
	}
	return nil, nil
}

// refusal says why a push does not get past what stands in its way; nil: it does.
func (s *seat) refusal(q *queue, in *engine.Message) error {
	switch {
	case in.OnConflict == engine.Keep:
		return nil
	case s.state == engine.Finished:
		return engine.RefuseFinished(engine.Ref{Queue: q.name, Key: in.Key}, s.ending, instant(s.ended))
	case in.OnConflict == engine.Reject:
		return refusePush(q, in.Key, engine.ErrExists)
	case s.state == engine.Leased:
		return refusePush(q, in.Key, engine.ErrLeased)
	}
	return nil
}
