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
	"github.com/tarryhq/tarry/internal/trouble"
)

// queue is what this process has of a queue. Engine.mu guards it.
type queue struct {
	name    string
	here    []*item // ready, in the order in which they go out
	died    int     // not told yet
	spent   []*item // dead, their tokens still good
	leased  int
	polls   int        // that wait for it
	polled  time.Time  // when the last ended
	flow    *flow      // nil: nothing flows in
	flowing sync.Mutex // held while that is begun, before Engine.mu
	waiters map[chan struct{}]struct{}
}

// item is a delivery that has not been acknowledged.
type item struct {
	engine.Info
	session *session
	ch      *amqp.Channel
	flow    *flow // on which it came; nil: it was asked for
	tag     uint64
	lease   *lease // the latest; nil: none yet. Guarded by Engine.mu
}

// ack has the broker forget a delivery. When that fails its channel has ended, and the
// message comes again.
func (x *item) ack() error {
	err := x.ch.Ack(x.tag, false)
	if err == nil {
		x.session.measured.acks.Add(1)
	}
	x.session.acks.sent()
	if x.flow != nil {
		x.flow.acks.sent()
	}
	x.flow.less()
	return err
}

// flow are consumers: deliveries come by themselves, up to so many that are not acknowledged.
// It has a channel of its own, which is closed when it has been stopped and all that came is
// acknowledged: a quorum queue may have sent something after that, which is for nobody, and
// goes back with the channel.
type flow struct {
	session *session
	ch      *amqp.Channel
	held    atomic.Int64 // deliveries that are not acknowledged, and one until it is stopped
	acks    acks

	// Guarded by Engine.mu, and changed by who holds queue.flowing.
	consumers int
	most      int
}

// less notes that one delivery less is held.
func (f *flow) less() {
	if f == nil || f.held.Add(-1) > 0 {
		return
	}
	end := func() { _ = f.ch.Close() } // it may be over already
	if rest := f.acks.rest(); rest > 0 {
		time.AfterFunc(rest, end)
	} else {
		end()
	}
}

// stop ends what comes of so many consumers.
func (f *flow) stop(consumers int) {
	for i := range consumers {
		_ = f.ch.Cancel(consumerTag(i), false) // if it fails the channel is over
	}
	f.less()
}

// of returns what there is of a queue. Who has let go of Engine.mu asks for it again, unless
// something of that queue is counted that keeps it: idle may have forgotten it. Called with
// Engine.mu held.
func (e *Engine) of(name string) *queue {
	q := e.queues[name]
	if q == nil {
		q = &queue{name: name, waiters: make(map[chan struct{}]struct{})}
		e.queues[name] = q
		e.stir()
	}
	return q
}

// prefetchMost is how many deliveries of a queue a process has at most.
const prefetchMost = 10_000

// stream has deliveries of a queue come as long as somebody waits for them, so that besides
// those that are leased, or dead and not put away yet, there may be n.
func (e *Engine) stream(s *session, q *queue, n int) error {
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
	if err := s.ensureWork(q.name); err != nil {
		return err
	}
	begin := f == nil
	if begin {
		ch, err := s.in.Channel()
		if errors.Is(err, amqp.ErrChannelMax) {
			return &engine.Error{Op: "lease", Queue: q.name, Err: engine.ErrLimit, Hint: "RabbitMQ's channel_max allows no more queues to be waited for: raise it, or spread them over processes"}
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

// widen adds a consumer, so that more deliveries come. Those that are there go on: after the
// end of a consumer something may still come for it.
func (f *flow) widen(queue string, more int) (<-chan amqp.Delivery, error) {
	if err := f.ch.Qos(more, 0, false); err != nil {
		return nil, err
	}
	deliveries, err := f.ch.Consume(f.session.layout.workQueue(queue), consumerTag(f.consumers), false, false, false, false, nil)
	if notFound(err) {
		f.session.forget(f.session.layout.workQueue(queue))
	}
	return deliveries, err
}

func consumerTag(n int) string { return "tarry-" + strconv.Itoa(n) }

// receive takes in what a consumer gets, until it ends.
func (e *Engine) receive(q *queue, f *flow, deliveries <-chan amqp.Delivery) {
	for d := range deliveries {
		f.held.Add(1)
		e.arrived(q, f.session, f.ch, f, &d)
	}
	e.mu.Lock()
	ended := q.flow == f // by the broker, as when the queue is deleted
	if ended {
		q.flow = nil
		f.session.forget(f.session.layout.workQueue(q.name))
		q.tell()
	}
	if f.ch.IsClosed() {
		e.forgetItems(func(x *item) bool { return x.ch == f.ch })
	}
	consumers := f.consumers
	e.mu.Unlock()
	if ended {
		f.stop(consumers)
	}
}

// early is how long before its due a message that came is held here. What comes earlier goes
// round again: a policy has cut its way short.
const early = time.Second

// arrived takes in a delivery.
func (e *Engine) arrived(q *queue, s *session, ch *amqp.Channel, f *flow, d *amqp.Delivery) {
	e.measured.deliveries.Add(1)
	now := time.Now()
	x := &item{Info: *received(d, q.name, now, e.ids.next), session: s, ch: ch, flow: f, tag: d.DeliveryTag}
	if ahead := x.Created.Sub(now).Truncate(time.Millisecond); ahead > 0 {
		// The clock of the process that pushed it is ahead, by so much at least.
		x.Due, x.Created = x.Due.Add(-ahead), x.Created.Add(-ahead)
	}
	wait := x.Due.Sub(now)
	if wait > early {
		e.trouble.Note(cameEarly, q.name, "queue", q.name, "early", wait)
	}
	if wait > early || d.Redelivered && s.blocked.Load() == nil {
		// Going round, the message itself notes its attempts: the broker would count them only
		// up to a limit, and a classic queue does not count at all.
		e.aside(func() { e.putBack(context.Background(), s, []*item{x}) })
		return
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		e.tasks.Go(func() {
			defer timer.Stop()
			select {
			case <-timer.C:
				e.put(x)
			case <-s.ended:
			}
		})
		return
	}
	e.put(x)
}

var cameEarly = trouble.Kind{Level: slog.LevelWarn,
	Text: "RabbitMQ delivers messages before they are due, which wait again: keep policies with message-ttl or max-length off tarry's queues, and clocks in step"}

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

// tell wakes who waits for a queue. Called with Engine.mu held.
func (q *queue) tell() {
	for w := range q.waiters {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// firstEnd is the first deadline of what is leased of a queue; zero: there is none. Called
// with Engine.mu held.
func (e *Engine) firstEnd(q *queue) (first time.Time) {
	for _, l := range e.ends {
		if l.q == q && (first.IsZero() || l.deadline.Before(first)) {
			first = l.deadline
		}
	}
	return first
}
