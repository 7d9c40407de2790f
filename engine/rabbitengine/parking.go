package rabbitengine

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
)

// parkedFor is how long messages stay parked at most.
const parkedFor = 5 * time.Second

// attend looks for parked messages as long as a session lasts.
func (e *Engine) attend(s *session) {
	every := time.NewTicker(parkedFor)
	defer every.Stop()
	for foreign := 0; ; {
		was := foreign
		if foreign = e.unpark(s, was); foreign > was {
			e.cfg.Logger.Warn("RabbitMQ holds messages that can be routed nowhere and are not tarry's", "queue", s.layout.parking(), "count", foreign)
		}
		select {
		case <-every.C:
		case <-s.ended:
			return
		}
	}
}

// unpark puts messages on their way again that an exchange could route nowhere, because
// somebody has deleted a queue: all are declared first. What is not tarry's stays where it is,
// and is not looked at again while there are no more than those that are known.
func (e *Engine) unpark(s *session, known int) (foreign int) {
	name := s.layout.parking()
	parked := 0
	err := s.withChannel(func(ch *amqp.Channel) error {
		stands, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		parked = stands.Messages
		return err
	})
	if err == nil && parked <= known {
		return parked
	}
	if err == nil || notFound(err) {
		err = s.withChannel(s.layout.declare)
	}
	if err == nil && parked > 0 {
		s.forgetDelays()
		err = s.withChannel(func(ch *amqp.Channel) error {
			var failed error // of one, which is tried again; the others go on
			var acks acks
			defer acks.wait(s.ended)
			for range parked {
				d, ok, err := ch.Get(name, false)
				if err != nil {
					return err
				}
				if !ok {
					break
				}
				queue, _ := d.Headers[headerQueue].(string)
				if engine.CheckQueue("lease", queue) != nil {
					foreign++
					continue
				}
				m := received(&d, queue, time.Now(), e.ids.next)
				m.Attempt = attempts(&d)
				p := posting{op: "push", s: s}
				if m.Died.IsZero() {
					s.forget(s.layout.workQueue(queue))
					p.put(e.closing, m)
				} else {
					s.forget(s.layout.deadQueue(queue))
					p.bury(e.closing, m)
				}
				if err := p.confirm(e.closing)[0]; err != nil {
					failed = err
					continue
				}
				if err := d.Ack(false); err != nil {
					return err
				}
				acks.sent()
			}
			return failed
		})
	}
	if err != nil && !s.over() && e.closing.Err() == nil {
		e.cfg.Logger.Warn("what RabbitMQ could route nowhere could not be put on its way", "error", err)
	}
	return foreign
}
