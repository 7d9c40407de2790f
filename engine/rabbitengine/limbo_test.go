package rabbitengine

import (
	"context"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// idled has an engine do now what it does for a queue that nobody has asked for in a while.
func idled(t testing.TB, e *Engine, name string) *queue {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.queues[name]
	q.polled = time.Time{}
	if back := e.idle(); len(back) > 0 || e.queues[name] != nil {
		t.Fatalf("the queue is still there, with %d messages", len(back))
	}
	return q
}

// A delivery may still be on its way when the queue for which it came has been forgotten.
func TestWhatComesForAForgottenQueueGoesToOthers(t *testing.T) {
	t.Parallel()
	quorum(t, func(t *testing.T, url string, cfg Config) {
		a, b := opened(t, url, cfg), opened(t, url, cfg)
		pushed(t, a, engine.Message{})
		settled(t, a, engine.Settlement{Token: leased(t, a, 1, 0)[0].Token, Do: engine.Ack})
		q, s := idled(t, a, "q"), now(t, a)
		late := pushed(t, b, engine.Message{})
		var d *amqp.Delivery
		var ch *amqp.Channel
		servertest.Await(t, "the message", func() (err error) {
			if d, ch, err = s.get(t.Context(), "q"); err == nil && d == nil {
				err = engine.ErrNotFound
			}
			return err
		})
		a.arrived(q, s, ch, nil, d)
		if l := leased(t, b, 1, 0)[0]; l.ID != late.ID || l.Attempt != 1 {
			t.Fatalf("%+v", l)
		}
	})
}

// A settlement that fails may give its lease back to a queue that has been forgotten meanwhile.
func TestALeaseGivenBackToAForgottenQueueLapses(t *testing.T) {
	t.Parallel()
	quorum(t, func(t *testing.T, url string, cfg Config) {
		a, b := opened(t, url, cfg), opened(t, url, cfg)
		pushed(t, a, engine.Message{})
		first := leased(t, a, 1, 100*time.Millisecond)[0]
		a.mu.Lock()
		l := a.leaseOf(first.Token)
		a.release(l)
		a.mu.Unlock()
		idled(t, a, "q")
		a.restore(l)
		if l := leased(t, b, 1, 0)[0]; l.ID != first.ID || l.Attempt != 2 {
			t.Fatalf("%+v", l)
		}
	})
}

// What died is kept for a while, in case its token comes: it takes no one's place.
func TestTheDeadHoldNothingUp(t *testing.T) {
	t.Parallel()
	quorum(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		for range 4 {
			pushed(t, e, engine.Message{Terms: engine.Terms{MaxAttempts: 1}})
		}
		began := time.Now()
		for i := range 4 {
			leased(t, e, 1, 10*time.Millisecond)
			if i == 3 {
				break
			}
			servertest.Await(t, "its death", func() error {
				e.mu.Lock()
				defer e.mu.Unlock()
				if len(e.queues["q"].spent) <= i && time.Since(began) < 2*spentFor {
					return engine.ErrLeased
				}
				return nil
			})
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if n := len(e.queues["q"].spent); n < 3 && time.Since(began) < 2*spentFor {
			t.Errorf("%d of the dead are still here, after %s", n, time.Since(began))
		}
	})
}

// The broker delivers again what was on a channel that has ended: it is not put back, too.
func TestWhatWasOnAClosedChannelIsNotDoubled(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		pushed(t, e, engine.Message{})
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1, TTR: 10 * time.Millisecond}})
		ok(t, err)
		if len(g.Queues[0].Messages) != 1 {
			t.Fatalf("%+v", g)
		}
		ok(t, now(t, e).gets.open().Close())
		servertest.Await(t, "what is idle", func() error {
			e.mu.Lock()
			defer e.mu.Unlock()
			if len(e.queues)+len(e.leases) > 0 {
				return engine.ErrLeased
			}
			return nil
		})
		other := opened(t, url, cfg)
		settled(t, other, engine.Settlement{Token: leased(t, other, 1, 0)[0].Token, Do: engine.Ack})
		got, err := other.LeaseWait(t.Context(), engine.Wait{Queues: []string{"q"}, Max: 1, For: 500 * time.Millisecond})
		if ok(t, err); len(got.Messages) > 0 {
			t.Errorf("it comes again: %+v", got.Messages[0])
		}
	})
}

// What was delivered in vain is handed out also while the broker takes no messages, and its
// attempts cannot be noted.
func TestWhatCannotGoRoundIsHandedOut(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url string, cfg Config) {
		a, b := opened(t, url, cfg), opened(t, url, cfg)
		pushed(t, a, engine.Message{})
		leased(t, a, 1, time.Hour)
		s, alarm := now(t, b), "low on memory"
		s.blocked.Store(&alarm)
		ok(t, a.Close())
		if l := leased(t, b, 1, 0)[0]; l.Attempt != 2 {
			t.Errorf("%+v", l)
		}
		s.blocked.Store(nil)
	})
}

// What nobody asks for stays where it is while the broker takes no messages.
func TestWhatCannotBePutBackStays(t *testing.T) {
	t.Parallel()
	quorum(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		pushed(t, e, engine.Message{})
		first := leased(t, e, 1, time.Millisecond)[0] // it lapses, and is here
		s, alarm := now(t, e), "low on memory"
		s.blocked.Store(&alarm)
		defer s.blocked.Store(nil)
		servertest.Await(t, "its lapse", func() error {
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.lapse(); len(e.queues["q"].here) == 0 {
				return engine.ErrLeased
			}
			e.queues["q"].polled = time.Time{}
			if back := e.idle(); len(back) > 0 {
				t.Fatalf("%d are put back", len(back))
			}
			return nil
		})
		if l := leased(t, e, 1, 0)[0]; l.ID != first.ID || l.Attempt != 2 {
			t.Errorf("%+v", l)
		}
	})
}

// What dies while the broker takes no messages is put away once it does.
func TestWhatCannotBeBuriedIsBuriedLater(t *testing.T) {
	t.Parallel()
	quorum(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		pushed(t, e, engine.Message{Terms: engine.Terms{MaxAttempts: 1}})
		l := leased(t, e, 1, time.Millisecond)[0]
		ok(t, now(t, e).ensure(t.Context(), brokerQueue{queue: "q", dead: true}))
		s, alarm := now(t, e), "low on memory"
		s.blocked.Store(&alarm)
		servertest.Await(t, "its death", func() error {
			if len(deadOf(t, e, 10)) > 0 {
				t.Fatal("it is buried")
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.leaseOf(l.Token) != nil {
				return engine.ErrLeased
			}
			return nil
		})
		s.blocked.Store(nil)
		servertest.Await(t, "its burial", func() error {
			if dead := deadOf(t, e, 10); len(dead) != 1 || dead[0].ID != l.ID {
				return engine.ErrNotFound
			}
			return nil
		})
	})
}

// While something is put back, for which the broker takes its time, leases lapse.
func TestLeasesLapseWhileTheBrokerIsSlow(t *testing.T) {
	t.Parallel()
	quorum(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		_, err := e.Push(t.Context(), []engine.Message{{Queue: "p"}, {Queue: "p"}})
		ok(t, err)
		pushed(t, e, engine.Message{})
		first := leased(t, e, 1, time.Second)[0]
		_, err = e.LeaseWait(t.Context(), engine.Wait{Queues: []string{"p"}, Max: 1, For: time.Minute})
		ok(t, err)
		s := now(t, e)
		s.declares.Lock()
		defer s.declares.Unlock()
		s.forget(brokerQueue{queue: "p"})
		e.mu.Lock()
		p := e.queues["p"]
		p.here, p.polled = append(p.here, e.leaseOf(first.Token)), time.Time{}
		e.stir()
		e.mu.Unlock()
		if l := leased(t, e, 1, 0)[0]; l.ID != first.ID {
			t.Errorf("%+v", l)
		}
	})
}

// A parked message that nothing can be done for keeps no other back, and neither is lost nor
// loses an attempt however often it is tried, by as many processes.
func TestParkedMessagesKeepNoneBack(t *testing.T) {
	t.Parallel()
	url := rabbittest.Shared(t)
	e := opened(t, url, Config{Queues: Quorum})
	ch := bare(t, url)
	_, err := ch.QueueDeclare("tarry.queue.bad", true, false, false, false, nil) // of other settings
	ok(t, err)
	s := now(t, e)
	alarm := "low on memory"
	s.blocked.Store(&alarm) // the engine's own session does not look
	for _, queue := range []string{"bad", "q", ""} {
		m, err := e.message(&engine.Message{Queue: queue, Terms: engine.Terms{MaxAttempts: 3}})
		ok(t, err)
		p := publishing(m)
		if queue == "" {
			p = amqp.Publishing{DeliveryMode: amqp.Persistent}
		}
		send(t, ch, s.layout.parking(), "", p)
	}
	other, err := e.dial()
	ok(t, err)
	defer other.end()
	other.blocked.Store(&alarm)
	_, err = e.unpark(other)
	ok(t, err) // it does not look while the broker takes nothing
	if n, err := other.stock(s.layout.parking()); err != nil || n != 3 {
		t.Fatalf("%d are parked, %v", n, err)
	}
	other.blocked.Store(nil)
	for n := range 25 { // more than a quorum queue of RabbitMQ 4 bears without a limit of its own
		held, err := e.unpark(other)
		if err == nil || held == nil {
			t.Fatalf("round %d: nothing failed", n)
		}
		ok(t, held.Close())
		servertest.Await(t, "both to be back", func() error {
			if n, err := other.stock(s.layout.parking()); err != nil || n != 2 {
				return fmt.Errorf("%d are parked: %w", n, err)
			}
			return nil
		})
	}
	s.blocked.Store(nil)
	if l := leased(t, e, 1, 0)[0]; l.Queue != "q" || l.Attempt != 1 {
		t.Fatalf("%+v", l)
	}
	_, err = ch.QueueDelete("tarry.queue.bad", false, false, false)
	ok(t, err)
	got, err := e.LeaseWait(patience(t), engine.Wait{Queues: []string{"bad"}, Max: 1, For: time.Minute})
	if ok(t, err); len(got.Messages) != 1 || got.Messages[0].Attempt != 1 {
		t.Fatalf("%+v", got)
	}
}

// Many dead messages come back each once, and none is dead as well, however soon who asked
// for it goes away.
func TestARedriveCutShortDoublesNothing(t *testing.T) {
	t.Parallel()
	quorum(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		const n = int64(2*together + 50)
		msgs := make([]engine.Message, n)
		for i := range msgs {
			msgs[i].Queue = "q"
		}
		_, err := e.Push(t.Context(), msgs)
		ok(t, err)
		var bury []engine.Settlement
		for int64(len(bury)) < n {
			for _, l := range leased(t, e, int(n), time.Minute) {
				bury = append(bury, engine.Settlement{Token: l.Token, Do: engine.Bury})
			}
		}
		_, err = e.Settle(t.Context(), bury)
		ok(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		first := int64(0)
		_, err = e.dead(ctx, "redrive", "q", func(*engine.Info) (redrive, done bool) {
			if first++; first == together/2 {
				cancel()
			}
			return true, false
		})
		if engine.Code(err) != engine.Code(context.Canceled) {
			t.Fatal(err)
		}
		for left := n - first; left > 0; { // that the broker has back soon
			r, err := e.Redrive(patience(t), "q", nil, 0)
			ok(t, err)
			left -= r.Redriven
		}
		seen := make(map[engine.ID]bool)
		for int64(len(seen)) < n {
			for _, l := range leased(t, e, int(n), time.Minute) {
				if seen[l.ID] {
					t.Fatalf("%v comes twice", l.ID)
				}
				seen[l.ID] = true
			}
		}
	})
}
