package rabbitengine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/notify"
)

const (
	// parkedFor is how often parked messages are published again.
	parkedFor = 5 * time.Second
	// heldFor is how long messages that cannot be published are held before a retry.
	heldFor = 30 * time.Second
)

var (
	wasParked = notify.Trouble{Level: slog.LevelWarn,
		Text: "RabbitMQ had parked messages, which were published again: a queue was deleted, or a policy limits how long it keeps messages or how often it delivers them"}
	staysParked = notify.Trouble{Level: slog.LevelWarn, Text: "messages that RabbitMQ could not route cannot be published again"}
)

// parked handles the parking queue during a session. It leaves messages that it cannot
// publish unacknowledged on its channel, so that no process reads them again and again.
type parked struct {
	e     *Engine
	s     *session
	ch    *amqp.Channel // nil: not yet opened
	since time.Time     // when it was opened
	held  int           // on it
}

// attend checks for parked messages, and for deleted queues, until the session ends.
func (e *Engine) attend(s *session) {
	every := time.NewTicker(parkedFor)
	defer every.Stop()
	p := &parked{e: e, s: s}
	for {
		s.missQueue(e.cfg.Logger)
		if err := p.look(); err != nil && !s.over() && e.closing.Err() == nil {
			e.trouble.Note(staysParked, "", "queue", s.layout.parking(), "error", err)
		}
		select {
		case <-every.C:
		case <-s.ended:
			return
		}
	}
}

// look publishes messages that an exchange could not route, or that a policy expired. It
// first declares all that they need. It does nothing while the broker accepts no messages.
func (p *parked) look() error {
	if p.s.blocked.Load() != nil {
		return nil
	}
	if p.held > 0 && time.Since(p.since) > heldFor {
		p.release()
	}
	n, err := p.s.stock(p.s.layout.parking())
	if notFound(err) {
		return p.s.withChannel(p.s.layout.declare)
	}
	if err == nil && n > 0 {
		err = p.s.withChannel(p.s.layout.declare)
	}
	if err != nil || n == 0 {
		return err
	}
	p.s.forgetDelays()
	if p.ch == nil || p.ch.IsClosed() {
		if p.ch, err = p.s.in.Channel(); err != nil {
			return err
		}
		p.since, p.held = time.Now(), 0
	}
	return p.unpark(n)
}

// release returns the held messages.
func (p *parked) release() {
	_ = p.ch.Close() // it may be closed already
	p.ch, p.held = nil, 0
}

// unpark publishes up to n messages.
func (p *parked) unpark(n int) (failed error) {
	moved := 0
	var acks acks
	defer acks.wait(p.s.ended)
	for range n {
		d, there, err := p.ch.Get(p.s.layout.parking(), false)
		if err != nil {
			return err
		}
		if !there || !p.e.gate.TryEnter() {
			break
		}
		if err = p.post(&d); err == nil {
			err = d.Ack(false)
			acks.sent()
		}
		p.e.gate.Leave()
		if err != nil {
			p.held, failed = p.held+1, err // continue with the others
			continue
		}
		moved++
	}
	if moved > 0 {
		p.e.trouble.Note(wasParked, "", "count", moved)
	}
	return failed
}

// post publishes a parked message.
func (p *parked) post(d *amqp.Delivery) error {
	queue, _ := d.Headers[headerQueue].(string)
	if engine.CheckQueue("lease", queue) != nil {
		return errors.New("a message is not from tarry")
	}
	m := received(d, queue, time.Now(), p.e.ids.next)
	m.Attempt = attempts(d)
	if givenUp(d) {
		m.Attempt++
	}
	ctx, out := context.Background(), posting{op: "push", s: p.s}
	if m.Died.IsZero() {
		p.s.forget(p.s.layout.workQueue(queue))
		out.put(ctx, m)
	} else {
		p.s.forget(p.s.layout.deadQueue(queue))
		out.bury(ctx, m)
	}
	return out.confirm(ctx)[0]
}
