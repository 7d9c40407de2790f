package rabbitengine

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/notify"
	"github.com/tarryhq/tarry/timer"
)

// queue is this process's part of a queue. Engine.mu guards it.
type queue struct {
	name    string
	here    []*item // ready, in the order of leases
	died    int     // not reported yet
	spent   []*item // dead, with valid tokens
	leased  int
	polls   int        // polls waiting for it
	polled  time.Time  // when the last poll ended
	flow    *flow      // nil: no consumers
	flowing sync.Mutex // held while flow starts; locked before Engine.mu
	waiters map[chan struct{}]struct{}
}

// item is an unacknowledged delivery and its latest lease: the right to settle it, until the
// deadline, and after that until another decision about the item. Engine.mu guards the lease.
type item struct {
	engine.Info
	session *session
	ch      *amqp.Channel
	flow    *flow // its consumers; nil: it was fetched
	tag     uint64

	nonce    codec.Nonce // of the lease's token
	deadline time.Time
	q        *queue
	end      timer.Handle // in Engine.ends, while the lease is active
}

// ack acknowledges a delivery. If that fails, its channel is closed and the message comes
// again.
func (x *item) ack() error {
	err := x.ch.Ack(x.tag, false)
	if err == nil {
		x.session.measured.acks.Add(1)
	}
	x.session.acks.sent()
	x.flow.less()
	return err
}

// flow is a set of consumers: the broker sends deliveries up to a limit of unacknowledged
// ones. It has its own channel, which is closed once it has stopped and all deliveries are
// acknowledged. A quorum queue may send more after the stop; those return to the queue with
// the close.
type flow struct {
	session *session
	ch      *amqp.Channel
	held    atomic.Int64 // unacknowledged deliveries, plus one until the stop

	// Guarded by Engine.mu, and changed only while queue.flowing is held.
	consumers int
	most      int
}

// less records that one delivery fewer is held.
func (f *flow) less() {
	if f == nil || f.held.Add(-1) > 0 {
		return
	}
	end := func() { _ = f.ch.Close() } // it may be closed already
	if rest := f.session.acks.rest(); rest > 0 {
		time.AfterFunc(rest, end)
	} else {
		end()
	}
}

// stop cancels the given number of consumers.
func (f *flow) stop(consumers int) {
	for i := range consumers {
		_ = f.ch.Cancel(consumerTag(i), false) // on failure the channel is closed
	}
	f.less()
}

// of returns the state of a queue. After Engine.mu was released it must be looked up again,
// unless a count keeps it: idle may have dropped it. Called with Engine.mu held.
func (e *Engine) of(name string) *queue {
	q := e.queues[name]
	if q == nil {
		q = &queue{name: name, waiters: make(map[chan struct{}]struct{})}
		e.queues[name] = q
		e.stir()
	}
	return q
}

// prefetchMost is the most deliveries of a queue in a process.
const prefetchMost = 10_000

// stream makes deliveries of a queue flow while a poll waits, so that n are allowed beyond
// those that are leased or dead but not yet moved.
func (e *Engine) stream(ctx context.Context, s *session, q *queue, n int) error {
	e.mu.Lock()
	most := min(q.leased+len(q.spent)+n, prefetchMost)
	enough := q.flow != nil && q.flow.session == s && q.flow.most >= most
	e.mu.Unlock()
	if enough {
		return nil
	}
	q.flowing.Lock()
	defer q.flowing.Unlock()
	e.mu.Lock()
	f := q.flow
	e.mu.Unlock()
	if f != nil && (f.session != s || f.ch.IsClosed()) {
		f = nil
	}
	if f != nil && f.most >= most {
		return nil
	}
	if rest := s.cancelsFor(brokerQueue{queue: q.name}); rest > 0 { // other queues of the poll do not wait for it
		time.AfterFunc(rest, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			q.tell()
		})
		return nil
	}
	if err := s.ensure(ctx, brokerQueue{queue: q.name}); err != nil {
		return err
	}
	begin := f == nil
	if begin {
		ch, err := s.in.Channel()
		if errors.Is(err, amqp.ErrChannelMax) {
			return &engine.Error{Op: "lease", Queue: q.name, Err: engine.ErrLimit, Hint: "RabbitMQ's channel_max allows no polls of more queues: raise it, or spread the queues over processes"}
		}
		if err != nil {
			return err
		}
		f = &flow{session: s, ch: ch}
		f.held.Store(1)
	}
	most = min(max(most, 2*f.most), prefetchMost)
	deliveries, err := f.widen(q.name, most-f.most)
	if err != nil {
		if begin {
			f.less()
		}
		return err
	}
	e.mu.Lock()
	f.consumers, f.most = f.consumers+1, most
	if e.session == s {
		q.flow = f
	}
	e.mu.Unlock()
	e.tasks.Go(func() { e.receive(q, f, deliveries) })
	return nil
}

// widen adds a consumer to raise the limit. The existing consumers stay: deliveries may
// still arrive for a cancelled one.
func (f *flow) widen(queue string, more int) (<-chan amqp.Delivery, error) {
	if err := f.ch.Qos(more, 0, false); err != nil {
		return nil, err
	}
	deliveries, err := f.ch.Consume(f.session.layout.workQueue(queue), consumerTag(f.consumers), false, false, false, false, nil)
	if notFound(err) {
		f.session.forget(brokerQueue{queue: queue})
	}
	return deliveries, err
}

func consumerTag(n int) string { return "tarry-" + strconv.Itoa(n) }

// receive accepts the deliveries of a consumer until it ends.
func (e *Engine) receive(q *queue, f *flow, deliveries <-chan amqp.Delivery) {
	for d := range deliveries {
		f.held.Add(1)
		e.arrived(q, f.session, f.ch, f, &d)
	}
	e.mu.Lock()
	ended := q.flow == f // ended by the broker, as when the queue is deleted
	if ended {
		q.flow = nil
		q.tell()
	}
	if f.ch.IsClosed() {
		e.forgetItems(func(x *item) bool { return x.ch == f.ch })
	} else if ended {
		f.session.forget(brokerQueue{queue: q.name})
	}
	consumers := f.consumers
	e.mu.Unlock()
	if ended {
		f.stop(consumers)
	}
}

// early is how long a message that arrives before its due time is held here. A message that
// is earlier than this is delayed again, for example because a policy has expired it too
// soon.
const early = time.Second

// arrived accepts a delivery.
func (e *Engine) arrived(q *queue, s *session, ch *amqp.Channel, f *flow, d *amqp.Delivery) {
	e.measured.deliveries.Add(1)
	now := time.Now()
	x := &item{Info: *received(d, q.name, now, e.ids.next), session: s, ch: ch, flow: f, tag: d.DeliveryTag}
	if ahead := x.Created.Sub(now).Truncate(time.Millisecond); ahead > 0 {
		// The clock of the process that pushed it is ahead by at least this much.
		x.Due, x.Created = x.Due.Add(-ahead), x.Created.Add(-ahead)
	}
	rest := x.Due.Sub(now)
	if rest > early {
		e.trouble.Note(cameEarly, q.name, "queue", q.name, "early", rest)
	}
	if rest > early || d.Redelivered && s.blocked.Load() == nil {
		// When published again, the message carries its attempts: the broker would count
		// them only up to a limit, and classic queues do not count at all.
		e.aside(func() { e.putBack(context.Background(), s, []*item{x}) })
		return
	}
	if rest > 0 {
		e.tasks.Go(func() {
			if !duration.Await(s.ctx.Done(), rest) {
				e.put(x)
			}
		})
		return
	}
	e.put(x)
}

var cameEarly = notify.Trouble{Level: slog.LevelWarn,
	Text: "RabbitMQ delivered messages before they were due, and they are delayed again: do not apply policies with message-ttl or max-length to tarry's queues, and synchronize clocks"}

// put makes a delivery ready.
func (e *Engine) put(x *item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.session != e.session || x.ch.IsClosed() {
		return // the broker delivers it again
	}
	q := e.of(x.Queue)
	q.here = append(q.here, x)
	q.tell()
}

// tell wakes the polls of a queue. Called with Engine.mu held.
func (q *queue) tell() {
	for w := range q.waiters {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// firstEnd returns the first deadline of a queue's leases, or zero. Called with Engine.mu
// held.
func (e *Engine) firstEnd(q *queue) (first time.Time) {
	for _, l := range e.leases {
		if _, active := e.ends.Due(l.end); active && l.q == q && (first.IsZero() || l.deadline.Before(first)) {
			first = l.deadline
		}
	}
	return first
}
