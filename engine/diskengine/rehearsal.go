package diskengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
)

// name is a key in a queue.
type name struct{ queue, key string }

// seat is what a push finds under its key.
type seat struct {
	state engine.State // Gone: nothing
	due   int64
	bytes int // of the content, unless Finished

	policy engine.Policy // unless Finished
	ending engine.Ending // when Finished
	ended  int64

	lingers bool // it had expired when it was pushed, and counts as live until a push meets it
}

// rehearsal is what the pushes so far would have made.
type rehearsal struct {
	seats map[name]*seat   // of keys that several messages of the push have
	live  map[*queue]int64 // how many live messages more than now
	kept  int              // bytes of contents that are kept
	older olderBody        // bytes of those that are large
	news  int64            // new messages of all queues, with those that expire at once
}

// rehearse finds out whether any push would be refused, and looks up what they need.
func (a *atomicPush) rehearse(c *call) (*rehearsal, error) {
	r := &rehearsal{live: make(map[*queue]int64)}
	var lack error
	for i := range a.msgs {
		in := &a.msgs[i]
		refused, err := c.rehearseOne(r, in, a.twice[i], &a.hashes[i], &a.results[i])
		if err == errLack {
			lack = err
			continue
		}
		if err != nil {
			return nil, err
		}
		if !a.twice[i] && in.OnConflict != engine.Rearm {
			c.found.cut(a.hashes[i].key, c.e.cfg.tune.whole)
		}
		a.results[i].Err = refused
		a.refused = a.refused || refused != nil
	}
	if lack == nil && r.older > c.older {
		return nil, r.older
	}
	return r, lack
}

// seatOf returns what a push finds under its key now. If whole, the content is read too.
func (c *call) seatOf(q *queue, key string, hash *keyLookup, result *engine.PushResult, whole bool) (s seat, err error) {
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
	// The message with the key may be gone when a later message of the push asks for the key.
	// So other entries of the key in sstables are read now.
	for _, a := range []memtable.Area{memtable.Live, memtable.Finished} {
		if _, err := c.spotsOfKey(q, a, []byte(key), hash); err != nil {
			return s, err
		}
	}
	if ok {
		if whole { // what takes its place needs it
			if err := c.needContent(&m); err != nil {
				return s, err
			}
		}
		*result = c.result(&m, 0, nil)
		return seat{state: m.state(c.ms), due: m.Due, bytes: len(m.content), policy: m.Policy}, nil
	}
	t, left, err := c.finished(q, []byte(key), hash)
	if err != nil || !left || t.forgotten <= c.ms {
		return s, err
	}
	*result = engine.PushResult{ID: t.id, Due: instant(t.Due), State: engine.Finished, Ending: t.Ending, Ended: instant(t.Ended)}
	return seat{state: engine.Finished, due: t.Due, ending: t.Ending, ended: t.Ended}, nil
}

// shared is the seat of a key that several messages of the push have.
func (c *call) shared(r *rehearsal, q *queue, key string, hash *keyLookup, result *engine.PushResult) (*seat, error) {
	n := name{q.name, key}
	s := r.seats[n]
	if s == nil {
		is, err := c.seatOf(q, key, hash, result, true)
		if err != nil {
			return nil, err
		}
		if r.seats == nil {
			r.seats = make(map[name]*seat)
		}
		s = &is
		r.seats[n] = s
	}
	if s.lingers {
		s.lingers = false
		r.live[q]--
	}
	return s, nil
}

// rehearseOne says why one push would be refused; nil: it would not. twice says that another
// message of the push has its key.
func (c *call) rehearseOne(r *rehearsal, in *engine.Message, twice bool, hash *keyLookup, result *engine.PushResult) (refused, err error) {
	if err := c.e.refuseBody(in); err != nil {
		return err, nil
	}
	q, err := c.visit(in.Queue, true)
	if err != nil {
		return nil, err
	}
	c.see(q)
	var alone seat
	s := &alone
	switch {
	case in.Key == "":
	case twice:
		if s, err = c.shared(r, q, in.Key, hash, result); err != nil {
			return nil, err
		}
	default:
		if alone, err = c.seatOf(q, in.Key, hash, result, in.OnConflict == engine.Rearm); err != nil {
			return nil, err
		}
	}
	created := s.state == engine.Gone || s.state == engine.Finished && passes(in.OnConflict)
	if created {
		if x := q.settings; x != nil && x.MaxPending > 0 && q.live+r.live[q] >= x.MaxPending {
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
		s.policy, s.bytes = in.Resolve(q.defaults()), len(in.Body)
	} else if r.kept += s.bytes; r.kept > engine.MaxAtomicBytes {
		return nil, refuseKept(r.kept)
	} else if s.bytes > leastKept {
		r.older += olderBody(s.bytes)
	}
	s.state = engine.Scheduled                     // or ready: later pushes treat both alike
	if at := expiry(s.due, &s.policy); at < c.ms { // it is gone before the next is pushed
		s.state, s.ending, s.ended, s.lingers = engine.Gone, engine.Expired, at, true
		if at+millis(s.policy.Remember) > c.ms {
			s.state = engine.Finished
		}
	}
	return nil, nil
}

// refusal returns why a push is refused because of what it finds under its key; nil: it is
// not.
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
