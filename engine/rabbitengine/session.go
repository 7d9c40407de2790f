package rabbitengine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// session is one period of being connected. It has a connection for publishing and one for
// the rest, since a broker that is short of memory or disk stops reading from publishers.
// The leases of a session end with it.
type session struct {
	layout          *layout
	out, in         *amqp.Connection
	ctx             context.Context // cancelled at its end
	cancel          context.CancelFunc
	endOnce         sync.Once
	blocked         atomic.Pointer[string] // why the broker accepts no messages
	publishChannels [publishers]publishChannel
	turn            atomic.Uint32
	gets            gets
	acks            acks

	measured *measured // the engine's

	mu       sync.RWMutex
	declared map[brokerQueue]time.Time // zero: known to exist; else when it was found to be gone
	declares sync.Mutex                // held during declarations
}

// publishers is the number of channels for publishing.
const publishers = 4

// dial begins a session with the last node, or else with another one that answers.
func (e *Engine) dial() (s *session, err error) {
	for i := range e.urls {
		at := (e.node + i) % len(e.urls)
		var failed error
		if s, failed = e.dialNode(e.urls[at]); failed == nil {
			e.node = at
			return s, nil
		}
		if err == nil {
			err = failed
		}
	}
	return nil, err
}

// dialNode opens the connections and declares what all queues share.
func (e *Engine) dialNode(url string) (*session, error) {
	s := &session{declared: make(map[brokerQueue]time.Time), measured: &e.measured}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, to := range []**amqp.Connection{&s.out, &s.in} {
		c, err := amqp.DialConfig(url, e.dialing())
		if err != nil {
			s.end()
			return nil, err
		}
		*to = c
		closed := c.NotifyClose(make(chan *amqp.Error, 1))
		e.tasks.Go(func() {
			<-closed
			s.end()
		})
	}
	blocked := s.out.NotifyBlocked(make(chan amqp.Blocking, 8))
	e.tasks.Go(func() {
		for b := range blocked {
			if s.blocked.Store(nil); b.Active {
				s.blocked.Store(&b.Reason)
			}
		}
	})
	s.layout = e.layoutFor(s.in)
	if err := s.withChannel(s.layout.declare); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// end ends a session; its calls in progress fail.
func (s *session) end() {
	s.endOnce.Do(func() {
		s.cancel()
		for _, c := range []*amqp.Connection{s.out, s.in} {
			if c != nil {
				go func() { _ = c.CloseDeadline(time.Now().Add(time.Second)) }() // it ends either way
			}
		}
	})
}

func (s *session) over() bool { return s.ctx.Err() != nil }

// withChannel runs do on its own channel, since a failure may close it.
func (s *session) withChannel(do func(*amqp.Channel) error) error {
	ch, err := s.in.Channel()
	if err != nil {
		return err
	}
	err = do(ch)
	if closed := ch.Close(); err == nil {
		err = closed
	}
	return err
}

// stock returns the number of ready messages in a queue of the broker.
func (s *session) stock(name string) (n int, err error) {
	err = s.withChannel(func(ch *amqp.Channel) error {
		stands, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		n = stands.Messages
		return err
	})
	return n, err
}

// missWithin bounds a look for the declared queues: parked messages wait for its end.
const missWithin = time.Second

// missQueues looks for the declared queues, as many as the time allows, each time in another
// order, and warns of those that are gone.
func (s *session) missQueues(log *slog.Logger) {
	s.mu.RLock()
	all := slices.DeleteFunc(slices.Collect(maps.Keys(s.declared)), func(q brokerQueue) bool { return !s.declared[q].IsZero() })
	s.mu.RUnlock()
	until := time.Now().Add(missWithin)
	for n := 0; n < len(all) && time.Now().Before(until); n++ {
		err := s.withChannel(func(ch *amqp.Channel) error {
			for ; n < len(all) && time.Now().Before(until); n++ {
				if _, err := ch.QueueDeclarePassive(s.layout.name(all[n]), true, false, false, false, nil); err != nil {
					return err
				}
			}
			return nil
		})
		switch {
		case notFound(err):
			log.Warn("a queue of RabbitMQ is gone, and its messages are lost; do not apply policies with expires to tarry's queues", "queue", s.layout.name(all[n]))
			s.forget(all[n])
		case err != nil:
			return
		}
	}
}

// ensure declares a queue unless it is known to exist.
func (s *session) ensure(ctx context.Context, q brokerQueue) error {
	if s.knows(q) {
		return nil
	}
	if err := s.awaitCancels(ctx, q); err != nil {
		return err
	}
	s.declares.Lock()
	defer s.declares.Unlock()
	if s.knows(q) {
		return nil
	}
	err := s.withChannel(func(ch *amqp.Channel) error { return s.layout.declareQueue(ch, q) })
	if err == nil {
		s.mu.Lock()
		s.declared[q] = time.Time{}
		s.mu.Unlock()
	}
	return err
}

func (s *session) knows(q brokerQueue) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	gone, ok := s.declared[q]
	return ok && gone.IsZero()
}

// forget records that a queue is gone.
func (s *session) forget(q brokerQueue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared[q] = time.Now()
}

// cancelsWithin is how long a broker may take to cancel the consumers of a deleted queue.
const cancelsWithin = time.Second

// cancelsFor returns for how long consumers of a queue that is gone may not be cancelled yet,
// here and in other processes. RabbitMQ 3 moves those that are left to a new queue of this
// name. If it is a quorum queue, they block its messages: they are counted as delivered, but
// never arrive.
func (s *session) cancelsFor(q brokerQueue) time.Duration {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return time.Until(s.declared[q].Add(cancelsWithin))
}

// awaitCancels waits for that long.
func (s *session) awaitCancels(ctx context.Context, q brokerQueue) error {
	rest := s.cancelsFor(q)
	if rest <= 0 {
		return nil
	}
	select {
	case <-time.After(rest):
	case <-s.ctx.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// ensureDelay declares the queues on the way of a delay.
func (s *session) ensureDelay(ctx context.Context, units uint64) error {
	for delay := range digitDelays(units) {
		if err := s.ensure(ctx, brokerQueue{delay: delay}); err != nil {
			return err
		}
	}
	return nil
}

// declareAgain makes ensure declare all queues again.
func (s *session) declareAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.declared, func(_ brokerQueue, gone time.Time) bool { return gone.IsZero() })
}

// nextChannel returns one of the channels that small messages share.
func (s *session) nextChannel() *publishChannel { return &s.publishChannels[s.turn.Add(1)%publishers] }

// keep maintains a session while the engine is open: it connects, waits for the end, and
// reconnects.
func (e *Engine) keep(first *session) {
	pause := calls.Pause{Least: 50 * time.Millisecond, Most: 5 * time.Second}
	for s := first; ; {
		if s != nil {
			select {
			case <-s.ctx.Done():
			case <-e.quiet:
				s.acks.wait(s.ctx.Done())
				s.end()
				e.lost(s, nil)
				return
			}
			e.lost(s, errEnded)
		}
		if !pause.Wait(e.closing) {
			return
		}
		var err error
		if s, err = e.dial(); err != nil {
			e.measured.refusals.Add(1)
			s = nil
			e.say(err)
			continue
		}
		pause.Reset()
		e.begun(s)
	}
}

var errEnded = errors.New("the connection to RabbitMQ ended")

// begun lets calls continue in a session.
func (e *Engine) begun(s *session) {
	e.measured.sessions.Add(1)
	e.mu.Lock()
	if e.reason != nil {
		e.cfg.Logger.Warn("reconnected to RabbitMQ")
	}
	e.session, e.reason = s, nil
	close(e.news)
	e.news = make(chan struct{})
	e.mu.Unlock()
	e.tasks.Go(func() { e.attend(s) })
}

// lost drops the leases of a session.
func (e *Engine) lost(s *session, reason error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session, e.reason = nil, reason
	if reason != nil {
		e.cfg.Logger.Warn("lost the connection to RabbitMQ; leased messages come again")
	}
	close(e.news)
	e.news = make(chan struct{})
	e.forgetLeases(s)
}

// say records and logs why there is no connection.
func (e *Engine) say(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reason == nil || e.reason.Error() != err.Error() {
		e.cfg.Logger.Warn("cannot reach RabbitMQ", "error", fault("connect", "", err))
	}
	e.reason = err
}

// connectWithin is how long a call waits for a connection.
const connectWithin = 2 * time.Second

// current returns the session. It waits up to connectWithin for one.
func (e *Engine) current(ctx context.Context, op, queue string) (*session, error) {
	var timeout <-chan time.Time
	for {
		e.mu.Lock()
		s, news, reason := e.session, e.news, e.reason
		e.mu.Unlock()
		if s != nil && !s.over() {
			return s, nil
		}
		if timeout == nil {
			timeout = time.After(connectWithin)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, &engine.Error{Op: op, Queue: queue, Err: ctx.Err()}
		case <-e.closing.Done():
			return nil, &engine.Error{Op: op, Queue: queue, Err: engine.ErrClosed, Hint: "the engine was closed"}
		case <-timeout:
			if reason == nil {
				reason = errEnded
			}
			return nil, fault(op, queue, reason)
		}
	}
}
