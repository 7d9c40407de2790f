package tarry

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// round is one call to the engine and who gets what of the answer.
type round struct {
	wants  []engine.Want
	shares [][]share // for each want, in the order of subscription
	sent   time.Time // before the engine is asked
	until  time.Time // when there is nothing to ask: sleep until then; zero: until woken
}

type share struct {
	sub *subscription
	n   int
}

type wantKey struct {
	queue  string
	ttr    time.Duration
	remote bool
}

// plan decides what to ask now. Called with d.mu held.
func (d *dispatcher) plan(now time.Time) (r round) {
	r.sent = now
	for _, b := range d.queues {
		if !b.ask && (passed(b.due, now) || passed(b.until, now)) {
			b.ask = true
		}
	}
	at := make(map[wantKey]int)
	for _, s := range d.subs {
		s.taken = 0
		first := s.turn
		ask := d.asking(s)
		idle := ask == 0 // no queue of it needs asking
		for i := range s.queues {
			if ask == 0 {
				break
			}
			q := s.queues[(first+i)%len(s.queues)]
			b := d.queues[q]
			if !b.ask {
				continue
			}
			n := min(s.room(q, s.taken), MaxLease)
			if n > 0 && s.spread {
				n = (n + ask - 1) / ask
			}
			ask--
			if n <= 0 {
				continue
			}
			if s.taken == 0 {
				// Only who was asked goes to the end, or a queue could always meet a full house.
				s.turn = (first + i + 1) % len(s.queues)
			}
			s.taken += n
			k := wantKey{q, s.ttr, s.remote}
			w, ok := at[k]
			if !ok {
				w = len(r.wants)
				at[k] = w
				r.wants = append(r.wants, engine.Want{Queue: q, TTR: s.ttr, Remote: s.remote})
				r.shares = append(r.shares, nil)
				b.hinted = false
			}
			if n = min(n, MaxLease-r.wants[w].Max); n > 0 {
				r.wants[w].Max += n
				r.shares[w] = append(r.shares[w], share{s, n})
			}
		}
		if idle && s.asked != nil {
			s.asked(d.known(s))
		}
	}
	if len(r.wants) == 0 {
		r.until = d.earliest()
	}
	return r
}

// asking counts the queues of a subscription that are to be asked.
func (d *dispatcher) asking(s *subscription) (n int) {
	for _, q := range s.queues {
		if d.queues[q].ask {
			n++
		}
	}
	return n
}

func passed(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }

// known returns the engine's clock and the least time at which one of the
// subscription's queues may have something.
func (d *dispatcher) known(s *subscription) (now, next time.Time) {
	for _, q := range s.queues {
		b := d.queues[q]
		if b.now.After(now) {
			now = b.now
		}
		if !b.next.IsZero() && (next.IsZero() || b.next.Before(next)) {
			next = b.next
		}
	}
	return now, next
}

// earliest returns when the first queue must be asked again.
func (d *dispatcher) earliest() (t time.Time) {
	for _, b := range d.queues {
		for _, u := range [...]time.Time{b.due, b.until} {
			// A queue that is to be asked waits for room, not for time.
			if !b.ask && !u.IsZero() && (t.IsZero() || u.Before(t)) {
				t = u
			}
		}
	}
	return t
}

// conclude notes what the answer says of the queues, and hands out the leases.
func (d *dispatcher) conclude(r round, g engine.Grant, err error) {
	now := time.Now()
	var orphans []engine.Lease
	d.mu.Lock()
	for i, w := range r.wants {
		var got engine.Granted
		if err != nil {
			got.Err = err
		} else {
			got = g.Queues[i]
		}
		d.learn(w.Queue, got, g.Now, now)
		told := got.Expired == 0 && got.Died == 0
		for _, sh := range r.shares[i] {
			if sh.sub.gone {
				continue
			}
			if !told && sh.sub.noted != nil {
				sh.sub.noted(w.Queue, got.Expired, got.Died)
				told = true // by one alone, so that none is counted twice
			}
			if got.Err != nil {
				sh.sub.fail(got.Err)
				continue
			}
			if n := min(sh.n, len(got.Messages)); n > 0 {
				sh.sub.deliver(got.Messages[:n:n], g.Now, r.sent)
				got.Messages = got.Messages[n:]
			}
		}
		orphans = append(orphans, got.Messages...)
	}
	d.mu.Unlock()
	if len(orphans) > 0 {
		d.tasks.Go(func() { d.release(orphans) })
	}
}

// The pause after a failed call, doubling.
const (
	failPauseBase = 50 * time.Millisecond
	failPauseMax  = 5 * time.Second
)

func failPause(fails int) time.Duration {
	return min(failPauseBase<<min(fails, 10), failPauseMax)
}

// learn sets the belief in a queue by the engine's answer.
func (d *dispatcher) learn(queue string, got engine.Granted, engineNow, now time.Time) {
	b := d.queues[queue]
	if b == nil {
		return
	}
	if got.Err != nil {
		pause := failPause(b.fails)
		b.fails++
		b.ask, b.next, b.until = false, time.Time{}, time.Time{}
		b.due = now.Add(pause)
		d.log.Warn("the engine could not be asked for messages", "queue", queue, "error", got.Err, "again_in", pause)
		return
	}
	b.fails = 0
	b.now = engineNow
	b.ask = got.More || b.hinted
	b.next = got.NextDue
	b.due, b.until = time.Time{}, time.Time{}
	if !got.NextDue.IsZero() {
		b.due = d.local(got.NextDue, engineNow, now)
	}
	if d.caps.Recheck > 0 {
		b.until = now.Add(d.caps.Recheck)
	}
}

// local turns an instant of the engine's clock into one of ours. An engine that
// runs on our clock may answer in whole milliseconds; ours is finer.
func (d *dispatcher) local(t, engineNow, now time.Time) time.Time {
	if wall := now.Round(0); d.caps.Recheck == 0 && engineNow.Sub(wall).Abs() < napDrift {
		engineNow = wall
	}
	return now.Add(t.Sub(engineNow))
}
