package tarry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Pushed is the answer to a push. When the push failed with ErrExists or
// ErrLeased, ID, Due and State describe the live message in the way.
type Pushed struct {
	Outcome Outcome
	ID      ID
	Queue   string
	Key     string
	Due     time.Time
	State   State
}

// Push pushes one message of bytes, and returns when it is kept as the engine
// promises. ErrInvalid, ErrTooLarge, ErrExists, ErrLeased, ErrLimit. A Topic does
// the same for typed bodies.
func (c *Client) Push(ctx context.Context, queue string, body []byte, opts ...PushOption) (Pushed, error) {
	return c.pushOne(ctx, NewMessage(queue, body, opts...))
}

// Rearm winds the message with this key back to due, keeping its body; when there
// is none it creates one with the body and options given. ErrLeased when it came
// too late.
func (c *Client) Rearm(ctx context.Context, queue, key string, due Due, body []byte, opts ...PushOption) (Pushed, error) {
	m := NewMessage(queue, body, opts...)
	m.Key, m.Due, m.OnConflict = key, due.when, Rearm
	return c.pushOne(ctx, m)
}

func (c *Client) pushOne(ctx context.Context, m engine.Message) (Pushed, error) {
	const op = "push"
	if err := c.begin(ctx, op, m.Queue); err != nil {
		return Pushed{}, err
	}
	if err := c.check(op, &m); err != nil {
		return Pushed{}, err
	}
	r, err := c.push(ctx, m)
	if err == nil {
		err = r.Err
	}
	return pushed(&m, r), fail(op, Ref{Queue: m.Queue, Key: m.Key}, err)
}

func (c *Client) push(ctx context.Context, m engine.Message) (engine.PushResult, error) {
	if c.pushes != nil {
		// A caller who leaves early may change his.
		m.Body, m.Headers, m.Backoff = slices.Clone(m.Body), slices.Clone(m.Headers), slices.Clone(m.Backoff)
		return c.pushes.Do(ctx, m)
	}
	rs, err := c.eng.Push(ctx, []engine.Message{m})
	if err != nil {
		return engine.PushResult{}, err
	}
	return rs[0], nil
}

func pushed(m *engine.Message, r engine.PushResult) Pushed {
	return Pushed{Outcome: r.Outcome, ID: r.ID, Queue: m.Queue, Key: m.Key, Due: r.Due, State: r.State}
}

// PushMany pushes messages made by NewMessage; each succeeds or fails alone, and
// errs, when not nil, holds the error of each. err is for the call as a whole. At
// most 10,000 at once.
func (c *Client) PushMany(ctx context.Context, msgs []engine.Message) (out []Pushed, errs []error, err error) {
	const op = "push"
	if err := c.beginBatch(ctx, op, len(msgs)); err != nil {
		return nil, nil, err
	}
	out = make([]Pushed, len(msgs))
	failed := func(i int, err error) {
		if errs == nil {
			errs = make([]error, len(msgs))
		}
		errs[i] = fail(op, Ref{Queue: msgs[i].Queue, Key: msgs[i].Key}, err)
	}
	good, at := msgs, []int(nil) // at: where good[i] stood, once any was refused
	for i := range msgs {
		if err := c.check(op, &msgs[i]); err != nil {
			if at == nil {
				good = make([]engine.Message, 0, len(msgs))
				at = make([]int, 0, len(msgs))
				for j := range i {
					good, at = append(good, msgs[j]), append(at, j)
				}
			}
			failed(i, err)
			out[i] = Pushed{Queue: clip(msgs[i].Queue), Key: clip(msgs[i].Key)}
		} else if at != nil {
			good, at = append(good, msgs[i]), append(at, i)
		}
	}
	if len(good) == 0 {
		return out, errs, nil
	}
	rs, err := c.eng.Push(ctx, good)
	if err != nil {
		return nil, nil, fail(op, Ref{}, err)
	}
	for j, r := range rs {
		i := j
		if at != nil {
			i = at[j]
		}
		out[i] = pushed(&msgs[i], r)
		if r.Err != nil {
			failed(i, r.Err)
		}
	}
	return out, errs, nil
}

// PushAtomic keeps all messages or none; its error is then that of the first that
// failed. ErrUnsupported where the engine cannot.
func (c *Client) PushAtomic(ctx context.Context, msgs []engine.Message) ([]Pushed, error) {
	const op = "push"
	if err := c.beginBatch(ctx, op, len(msgs)); err != nil {
		return nil, err
	}
	p, ok := c.eng.(engine.AtomicPusher)
	if err := c.able(ok && c.caps.Atomic, op, "", "atomic batches"); err != nil {
		return nil, err
	}
	for i := range msgs {
		if err := c.check(op, &msgs[i]); err != nil {
			return nil, err
		}
	}
	if len(msgs) == 0 {
		return nil, nil
	}
	rs, err := p.PushAtomic(ctx, msgs)
	if err != nil {
		return nil, fail(op, Ref{}, err)
	}
	out := make([]Pushed, len(rs))
	for i, r := range rs {
		out[i] = pushed(&msgs[i], r)
	}
	return out, nil
}

func (c *Client) beginBatch(ctx context.Context, op string, n int) error {
	if n > MaxBatch {
		return &Error{Op: op, Err: ErrTooLarge, Hint: fmt.Sprintf("%d items in one call; at most %d are allowed", n, MaxBatch)}
	}
	return c.begin(ctx, op, "")
}

// PushMessage is Push for a message made by NewMessage.
func (c *Client) PushMessage(ctx context.Context, m engine.Message) (Pushed, error) {
	return c.pushOne(ctx, m)
}
