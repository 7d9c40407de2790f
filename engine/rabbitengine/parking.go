package rabbitengine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/trouble"
)

const (
	// parkedFor is how long messages stay parked that can be put on their way.
	parkedFor = 5 * time.Second
	// heldFor is how long those that cannot are held before they are tried again.
	heldFor = 30 * time.Second
)

var (
	wasParked = trouble.Kind{Level: slog.LevelWarn,
		Text: "RabbitMQ has parked messages, which go on: a queue was deleted, or a policy limits how long, or how often, it keeps messages"}
	staysParked = trouble.Kind{Level: slog.LevelWarn, Text: "what RabbitMQ could route nowhere cannot be put on its way"}
)

// parked looks after the parking queue as long as a session lasts. What it cannot put on its way
// it leaves unacknowledged on its channel, so that no process reads it again and again.
type parked struct {
	e     *Engine
	s     *session
	ch    *amqp.Channel // nil: none yet
	since time.Time     // when it was opened
	held  int           // on it
}

// attend looks for parked messages, and for queues that are gone, as long as a session lasts.
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

// look puts messages on their way that an exchange could route nowhere, or that a policy has
// put out of their queues. All that they need is declared first. A broker that takes no
// messages would only have them back.
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

// release gives back what is held.
func (p *parked) release() {
	_ = p.ch.Close() // it may be over
	p.ch, p.held = nil, 0
}

// unpark puts up to so many messages on their way.
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
			p.held, failed = p.held+1, err // the others go on
			continue
		}
		moved++
	}
	if moved > 0 {
		p.e.trouble.Note(wasParked, "", "count", moved)
	}
	return failed
}

// post publishes a parked message anew.
func (p *parked) post(d *amqp.Delivery) error {
	queue, _ := d.Headers[headerQueue].(string)
	if engine.CheckQueue("lease", queue) != nil {
		return errors.New("a message is not tarry's")
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
