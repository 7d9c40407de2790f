package rabbitengine

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/attempt"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// List lists the dead. It takes them all out of the dead queue and puts them back, so that
// each page costs as much as there are, and others see less meanwhile.
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
	span, err := token.SpanOf(&q)
	if err != nil {
		return engine.Page{}, err
	}
	var first []engine.Info // the first behind the cursor, one more than asked for
	_, err = e.dead(ctx, op, q.Queue, func(m *engine.Info) (redrive, done bool) {
		at := place(m)
		if at.Compare(span.Low) < 0 {
			return false, false
		}
		i, _ := slices.BinarySearchFunc(first, at, func(m engine.Info, at token.Place) int { return place(&m).Compare(at) })
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

// place is where a dead message stands.
func place(m *engine.Info) token.Place { return token.Place{At: m.Died.UnixMilli(), ID: m.ID} }

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
			all.Skipped++ // named twice
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

// together is how many dead messages are on their way to the work queue at a time.
const together = 100

// dead takes the dead of a queue out one by one, those that were there when it began and at
// most 65,535, until each says that it is enough. What each says goes to the work queue, the
// rest goes back. It returns how many went.
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
	name, left := s.layout.deadQueue(queue), 0
	err = s.withChannel(func(ch *amqp.Channel) error { // with whose end what is kept goes back
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
			away.acks.wait(s.ended)
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

// leaving are dead messages on their way to the work queue.
type leaving struct {
	posting
	from []*amqp.Delivery
	acks acks
	gone int
}

// confirm acknowledges what the broker has in the work queue. It waits for that when ctx has
// ended, too, since otherwise it would be dead as well.
func (l *leaving) confirm(ctx context.Context) (failed error) {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmWithin)
	defer cancel()
	for i, err := range l.posting.confirm(longer) {
		if err == nil {
			err = l.from[i].Ack(false)
			l.acks.sent()
		}
		if err == nil {
			l.gone++
		}
		failed = cmp.Or(failed, err)
	}
	l.posting, l.from = posting{op: l.op, s: l.s}, nil
	return failed
}

// confirmWithin is how long that takes at most.
const confirmWithin = 10 * time.Second

// next is the next delivery; nil: others have it, or it is not there.
func next(ctx context.Context, op string, came <-chan amqp.Delivery) (*amqp.Delivery, error) {
	timer := time.NewTimer(stockWithin)
	defer timer.Stop()
	select {
	case d, ok := <-came:
		if !ok {
			return nil, amqp.ErrClosed
		}
		return &d, nil
	case <-timer.C:
		return nil, nil
	case <-ctx.Done():
		return nil, &engine.Error{Op: op, Err: ctx.Err()}
	}
}

// stockWithin is how long it takes a broker at most to have back what it was given back.
const stockWithin = time.Second

// awaitStock waits until a queue holds so many messages, as it will: who looks next is to see
// them.
func (s *session) awaitStock(ctx context.Context, name string, n int) {
	ctx, cancel := context.WithTimeout(ctx, stockWithin)
	defer cancel()
	pause := attempt.Pause{Least: time.Millisecond, Most: 50 * time.Millisecond}
	for {
		if stock, err := s.stock(name); err != nil || stock >= n || !pause.Wait(ctx) {
			return
		}
	}
}

// attempts are those that count of a message that is dead or parked, however often it has been
// looked at.
func attempts(d *amqp.Delivery) uint32 {
	n, _ := number(d.Headers[headerAttempt])
	return uint32(clamped(n))
}
