package rabbitengine

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/internal/calls"
)

// List lists dead messages. It takes all of them out of the dead queue and puts them back. So
// each page costs as much as the queue holds, and concurrent calls see fewer messages.
func (e *Engine) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	const op = "list"
	if err := e.gate.Enter(ctx, op); err != nil {
		return engine.Page{}, err
	}
	defer e.gate.Leave()
	if err := q.Check(); err != nil {
		return engine.Page{}, err
	}
	if err := e.caps.CheckList(&q); err != nil {
		return engine.Page{}, err
	}
	span, err := codec.SpanOf(&q)
	if err != nil {
		return engine.Page{}, err
	}
	var first []engine.Info // the first after the cursor, one more than asked for
	_, err = e.dead(ctx, op, q.Queue, func(m *engine.Info) (redrive, done bool) {
		at := place(m)
		if at.Compare(span.Low) < 0 {
			return false, false
		}
		i, _ := slices.BinarySearchFunc(first, at, func(m engine.Info, at codec.Place) int { return place(&m).Compare(at) })
		if i <= q.Limit {
			if !q.Body {
				m.Body = nil
			}
			if first = slices.Insert(first, i, *m); len(first) > q.Limit+1 {
				first = first[:q.Limit+1]
			}
		}
		return false, false
	})
	if err != nil {
		return engine.Page{}, err
	}
	n, size := 0, 0
	for n < len(first) && n < q.Limit && size < engine.AnswerBytes {
		size += len(first[n].Body)
		n++
	}
	page := engine.Page{Messages: first[:n:n]}
	if n < len(first) {
		page.Next = place(&first[n-1]).Cursor(&q)
	}
	return page, nil
}

// place is the place of a dead message in the list.
func place(m *engine.Info) codec.Place { return codec.Place{At: m.Died.UnixMilli(), ID: m.ID} }

// Redrive puts dead messages into the work queue.
func (e *Engine) Redrive(ctx context.Context, queue string, ids []engine.ID, limit int) (engine.Redriven, error) {
	const op = "redrive"
	if err := e.gate.Enter(ctx, op); err != nil {
		return engine.Redriven{}, err
	}
	defer e.gate.Leave()
	if limit <= 0 || ids != nil {
		limit = math.MaxInt
	}
	var all engine.Redriven
	wanted := make(map[engine.ID]bool, len(ids))
	for _, id := range ids {
		if wanted[id] {
			all.Skipped++ // the id was given twice
		}
		wanted[id] = true
	}
	picked := 0
	n, err := e.dead(ctx, op, queue, func(m *engine.Info) (redrive, done bool) {
		if ids != nil && !wanted[m.ID] {
			return false, false
		}
		m.Attempt, m.Died = 0, time.Time{}
		m.Due = time.Now().UTC().Truncate(time.Millisecond)
		delete(wanted, m.ID)
		picked++
		return true, picked == limit || ids != nil && len(wanted) == 0
	})
	all.Redriven = int64(n)
	all.Skipped += int64(len(wanted))
	if all.Redriven > 0 {
		e.watchers.Hint(queue)
	}
	return all, err
}

// together is the number of dead messages published at a time.
const together = 100

// dead takes the dead messages of a queue one by one: those present at the start, and at
// most 65,535. Messages for which each returns redrive go to the work queue; all others go
// back. It ends when each returns done, and returns how many were redriven.
func (e *Engine) dead(ctx context.Context, op, queue string, each func(*engine.Info) (redrive, done bool)) (redriven int, err error) {
	e.deadTurn.Lock()
	defer e.deadTurn.Unlock()
	s, err := e.current(ctx, op, queue)
	if err != nil {
		return 0, err
	}
	e.mu.Lock()
	e.lapse()
	spent := e.spentSince(time.Now().Add(time.Hour))
	e.mu.Unlock()
	e.buryAll(ctx, s, spent)
	name, left := s.layout.name(brokerQueue{queue: queue, dead: true}), 0
	err = s.withChannel(func(ch *amqp.Channel) error { // closing it returns the messages that are kept
		stands, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		if err != nil {
			return err
		}
		if left = stands.Messages; left == 0 {
			return nil
		}
		if err := ch.Qos(min(left, math.MaxUint16), 0, false); err != nil {
			return err
		}
		came, err := ch.Consume(name, "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		away := leaving{posting: posting{op: op, s: s}}
		defer func() {
			redriven += away.gone
			left -= away.gone
			s.acks.wait(s.ctx.Done())
		}()
		for range min(left, math.MaxUint16) {
			d, err := next(ctx, op, came)
			if err != nil || d == nil {
				return cmp.Or(err, away.confirm(ctx))
			}
			m := received(d, queue, time.Now(), e.ids.next)
			m.State, m.Attempt = engine.Dead, attempts(d)
			redrive, done := each(m)
			if redrive {
				away.put(ctx, m)
				away.from = append(away.from, d)
			}
			if done {
				break
			}
			if len(away.from) == together {
				if err := away.confirm(ctx); err != nil {
					return err
				}
			}
		}
		return away.confirm(ctx)
	})
	if notFound(err) {
		return redriven, nil
	}
	if left > 0 {
		s.awaitStock(ctx, name, left)
	}
	return redriven, fault(op, queue, err)
}

// leaving holds dead messages that are being published to the work queue.
type leaving struct {
	posting
	from []*amqp.Delivery
	gone int
}

// confirm acknowledges the messages once the broker has confirmed their publication. It
// continues after ctx has ended, since those messages would otherwise be in both queues.
func (l *leaving) confirm(ctx context.Context) (failed error) {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmWithin)
	defer cancel()
	for i, err := range l.posting.confirm(longer) {
		if err == nil {
			err = l.from[i].Ack(false)
			l.s.acks.sent()
		}
		if err == nil {
			l.gone++
		}
		failed = cmp.Or(failed, err)
	}
	l.posting, l.from = posting{op: l.op, s: l.s}, nil
	return failed
}

// confirmWithin bounds the wait for the confirms.
const confirmWithin = 10 * time.Second

// next returns the next delivery; nil if the queue is empty or other calls hold the rest.
func next(ctx context.Context, op string, came <-chan amqp.Delivery) (*amqp.Delivery, error) {
	select {
	case d, ok := <-came:
		if !ok {
			return nil, amqp.ErrClosed
		}
		return &d, nil
	case <-time.After(stockWithin):
		return nil, nil
	case <-ctx.Done():
		return nil, &engine.Error{Op: op, Err: ctx.Err()}
	}
}

// stockWithin is how long a broker may take to count returned messages again.
const stockWithin = time.Second

// awaitStock waits until a queue holds the given number of messages, so that the next call
// sees them.
func (s *session) awaitStock(ctx context.Context, name string, n int) {
	ctx, cancel := context.WithTimeout(ctx, stockWithin)
	defer cancel()
	pause := calls.Pause{Least: time.Millisecond, Most: 50 * time.Millisecond}
	for {
		if stock, err := s.stock(name); err != nil || stock >= n || !pause.Wait(ctx) {
			return
		}
	}
}

// attempts returns the attempts of a dead or parked message. Deliveries to a list do not
// count.
func attempts(d *amqp.Delivery) uint32 {
	n, _ := number(d.Headers[headerAttempt])
	return uint32(clamped(n))
}
