package rabbitengine

import (
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/figure"
)

// measured is what an engine counts.
type measured struct {
	confirms   figure.Times
	nacked     atomic.Int64 // messages that the broker refused
	doubtful   atomic.Int64 // messages whose confirm did not come
	sessions   atomic.Int64
	refusals   atomic.Int64 // of connections
	acks       atomic.Int64
	deliveries atomic.Int64 // messages that came
}

// line is a channel that is opened when it is needed. Whoever opens it holds a lock.
type line struct{ ch atomic.Pointer[amqp.Channel] }

// open returns the channel; nil: there is none, or it is closed.
func (l *line) open() *amqp.Channel {
	if ch := l.ch.Load(); ch != nil && !ch.IsClosed() {
		return ch
	}
	return nil
}

var _ engine.Measurer = (*Engine)(nil)

// Figures implements engine.Measurer.
func (e *Engine) Figures() []engine.Figure {
	l, m := figure.Of("rabbit"), &e.measured
	l.Times("confirm_seconds", "How long it took until the broker had confirmed a message.", &m.confirms)
	l.TotalBy("unconfirmed", "Messages that were not confirmed: refused by the broker, or cut off or left before it had answered.", "cause",
		figure.By{Label: "refused", Value: float64(m.nacked.Load())},
		figure.By{Label: "unanswered", Value: float64(m.doubtful.Load())})
	var prefetched, leased, spent, consuming int
	e.mu.Lock()
	s := e.session
	for _, q := range e.queues {
		prefetched, leased, spent = prefetched+len(q.here), leased+q.leased, spent+len(q.spent)
		if q.flow != nil && !q.flow.ch.IsClosed() {
			consuming++
		}
	}
	e.mu.Unlock()
	publishing, getting, blocked := 0, 0, false
	if s != nil {
		blocked = s.blocked.Load() != nil
		for i := range s.exits {
			if s.exits[i].open() != nil {
				publishing++
			}
		}
		if s.gets.open() != nil {
			getting++
		}
	}
	l.Flag("up", "Whether it is connected to the broker.", s != nil && !s.over())
	l.Total("connects", "Times that it has connected: each but the first after the end of a connection.", float64(m.sessions.Load()))
	l.Total("connect_failures", "Times that it could not connect.", float64(m.refusals.Load()))
	l.Flag("blocked", "Whether the broker takes no messages, by an alarm of its own.", blocked)
	l.GaugeBy("channels", "Open channels.", "use",
		figure.By{Label: "publish", Value: float64(publishing)},
		figure.By{Label: "consume", Value: float64(consuming)},
		figure.By{Label: "get", Value: float64(getting)})
	l.GaugeBy("unacked", "Deliveries that are not acknowledged: fetched ahead, leased, or dead and not put away yet.", "state",
		figure.By{Label: "prefetched", Value: float64(prefetched)},
		figure.By{Label: "leased", Value: float64(leased)},
		figure.By{Label: "spent", Value: float64(spent)})
	l.Total("deliveries", "Messages that the broker has delivered.", float64(m.deliveries.Load()))
	l.Total("acks", "Deliveries that were acknowledged.", float64(m.acks.Load()))
	return l.All()
}
