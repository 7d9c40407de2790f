package rabbitengine

import (
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/figure"
)

// measured holds the counters of an engine.
type measured struct {
	confirms   figure.Times
	nacked     atomic.Int64 // messages that the broker refused
	doubtful   atomic.Int64 // messages without the expected confirm
	sessions   atomic.Int64
	refusals   atomic.Int64 // failed connection attempts
	acks       atomic.Int64
	deliveries atomic.Int64 // messages received
}

// line is a channel that is opened when needed, under a lock of the caller.
type line struct{ ch atomic.Pointer[amqp.Channel] }

// open returns the channel; nil if there is none or it is closed.
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
	l.Times("confirm_seconds", "Time from publishing a message to the broker's confirm.", &m.confirms)
	l.TotalBy("unconfirmed", "Messages without a confirm: refused by the broker, or the connection or the call ended first.", "cause",
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
		for i := range s.publishChannels {
			if s.publishChannels[i].open() != nil {
				publishing++
			}
		}
		if s.gets.open() != nil {
			getting++
		}
	}
	l.Flag("up", "Whether the engine is connected to the broker.", s != nil && !s.over())
	l.Total("connects", "Connections made: every one but the first follows the loss of another.", float64(m.sessions.Load()))
	l.Total("connect_failures", "Failed attempts to connect.", float64(m.refusals.Load()))
	l.Flag("blocked", "Whether an alarm of the broker blocks publishing.", blocked)
	l.GaugeBy("channels", "Open channels.", "use",
		figure.By{Label: "publish", Value: float64(publishing)},
		figure.By{Label: "consume", Value: float64(consuming)},
		figure.By{Label: "get", Value: float64(getting)})
	l.GaugeBy("unacked", "Unacknowledged deliveries: prefetched, leased, or dead and not yet moved.", "state",
		figure.By{Label: "prefetched", Value: float64(prefetched)},
		figure.By{Label: "leased", Value: float64(leased)},
		figure.By{Label: "spent", Value: float64(spent)})
	l.Total("deliveries", "Messages delivered by the broker.", float64(m.deliveries.Load()))
	l.Total("acks", "Acknowledged deliveries.", float64(m.acks.Load()))
	return l.All()
}
