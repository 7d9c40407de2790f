package amqp

import (
	"context"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/rabbit"
	"github.com/tarryhq/tarry/internal/wait"
)

// receiving is one connection from which messages are taken, until it is hung up.
type receiving struct {
	s          *source
	to         intake.Sink
	conn       *amqp.Connection
	ch         *amqp.Channel
	deliveries <-chan amqp.Delivery
	closed     chan *amqp.Error
	cancelled  chan string
	acks       acks
	refusals   chan refusal
	ctx        context.Context // ended by hangUp
	cancel     context.CancelFunc
	work       sync.WaitGroup

	mu      sync.Mutex
	missing error // what the latest look at the broker found
	stuck   error // why refused messages cannot be set aside
}

const consumerTag = "tarry"

// consume begins to take messages from the queue.
func (s *source) consume(c *amqp.Connection, to intake.Sink) (*receiving, error) {
	ch, err := c.Channel()
	if err != nil {
		return nil, err
	}
	r := &receiving{s: s, to: to, conn: c, ch: ch,
		closed:    ch.NotifyClose(make(chan *amqp.Error, 1)),
		cancelled: ch.NotifyCancel(make(chan string, 1)),
		refusals:  make(chan refusal, s.cfg.prefetch),
	}
	if err := ch.Qos(int(s.cfg.prefetch), 0, false); err != nil {
		return nil, err
	}
	if r.deliveries, err = ch.Consume(s.cfg.queue, consumerTag, false, false, false, false, nil); err != nil {
		return nil, err
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.acks.init(ch)
	r.work.Go(r.acks.run)
	r.work.Go(r.refuseAll)
	return r, nil
}

// run hands over messages until ctx ends or the connection is lost.
func (r *receiving) run(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var p probe
	defer p.close()
	for {
		select {
		case d, ok := <-r.deliveries:
			if !ok {
				return r.end()
			}
			r.to.Take(r.message(&d))
		case <-look.C:
			_, err := r.s.look(r.conn)
			if err == nil {
				err = p.look(ctx, r.s)
			}
			r.report(func() { r.missing = err })
		case <-ctx.Done():
			if err := r.ch.Cancel(consumerTag, true); err != nil {
				return r.s.trouble(err, "")
			}
			return nil
		}
	}
}

// end returns why no messages come any more.
func (r *receiving) end() error {
	select {
	case _, ok := <-r.cancelled:
		if ok {
			if _, err := r.s.queue(r.conn, r.s.cfg.queue, false); err != nil {
				return r.s.trouble(err, "no_queue")
			}
			return &intake.Trouble{Code: "timeout", Err: errEnded, Hint: hints["timeout"]}
		}
	default:
	}
	err := <-r.closed
	if err == nil {
		err = amqp.ErrClosed
	}
	if err.Code == amqp.PreconditionFailed {
		return &intake.Trouble{Code: "timeout", Err: rabbit.OneLine(err), Hint: hints["timeout"]}
	}
	return r.s.trouble(err, "no_queue")
}

// report reports what a look at the broker, or the refused messages, say.
func (r *receiving) report(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	err := r.missing
	if err == nil {
		err = r.stuck
	}
	r.to.Report(err)
}

// hangUp closes the connection, once what was settled is acked.
func (r *receiving) hangUp() {
	r.cancel()
	r.acks.end()
	r.work.Wait()
	r.acks.flush()
	rabbit.HangUp(r.conn)
}

// acks acks messages, many at a time: each goes up to the first that is not settled. While
// one is kept, each is acked by itself.
type acks struct {
	ch *amqp.Channel

	mu      sync.Mutex
	first   uint64 // the delivery tag of settled[0]
	settled []bool
	kept    map[uint64]bool // not settled, though settled has them so
	last    time.Time       // of the latest ack
	news    chan struct{}
	ended   bool
}

func (a *acks) init(ch *amqp.Channel) {
	a.ch, a.first, a.news, a.kept = ch, 1, make(chan struct{}, 1), make(map[uint64]bool)
}

// expect records a delivery. They come in order of their tags.
func (a *acks) expect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settled = append(a.settled, false)
}

// settle records that a message may be acked.
func (a *acks) settle(tag uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	delete(a.kept, tag)
	if tag >= a.first {
		a.pass(tag)
		return
	}
	a.last = time.Now()
	_ = a.ch.Ack(tag, false) // with the lock, so before any ack of many
}

// keep lets those be acked that came after a message, which is settled later.
func (a *acks) keep(tag uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || a.kept[tag] {
		return
	}
	a.kept[tag] = true
	a.pass(tag)
}

// pass records that a message holds up no other.
func (a *acks) pass(tag uint64) {
	a.settled[tag-a.first] = true
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// due returns which of the first n messages are to be acked.
func (a *acks) due(n int) (tags []uint64) {
	for i, settled := range a.settled[:n] {
		if tag := a.first + uint64(i); settled && !a.kept[tag] {
			tags = append(tags, tag)
		}
	}
	return tags
}

// run acks what is settled until end.
func (a *acks) run() {
	for range a.news {
		a.mu.Lock()
		n := 0
		for n < len(a.settled) && a.settled[n] {
			n++
		}
		tags, many := a.due(n), len(a.kept) == 0
		a.settled = a.settled[n:]
		a.first += uint64(n)
		if len(tags) > 0 {
			a.last = time.Now()
		}
		a.mu.Unlock()
		if many && n > 0 {
			tags = tags[n-1:]
		}
		for _, tag := range tags {
			_ = a.ch.Ack(tag, many) // else the channel is closed, and the messages come again
		}
	}
	for _, tag := range a.due(len(a.settled)) { // what came before these stays unsettled
		_ = a.ch.Ack(tag, false)
	}
}

// passOn is how long a channel may take to pass acks on to a quorum queue. What it holds when
// it closes is lost, and those messages come again.
const passOn = 500 * time.Millisecond

// end lets run return after the last ack.
func (a *acks) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.ended = true
		close(a.news)
	}
}

// flush waits until the broker's channel has passed on the acks.
func (a *acks) flush() {
	if !a.ch.IsClosed() {
		wait.For(nil, time.Until(a.last.Add(passOn)))
	}
}
