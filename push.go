package tarry

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// Pushed is the result of a push. When the push failed with ErrExists or ErrLeased, or its
// Outcome is Kept, ID, Due and State describe the existing message with that key: the live
// one, or the remembered one, which is Finished.
type Pushed struct {
	Outcome Outcome
	ID      ID
	Queue   string
	Key     string
	Due     time.Time
	State   State
	Ending  Ending    // when Finished: how it ended
	Ended   time.Time // when Finished
	Err     error     // PushMany: why this message was not pushed; nil: it was
}

// Push pushes one message of bytes, and returns once it is as durable as the engine
// promises. Errors: ErrInvalid, ErrTooLarge, ErrExists, ErrLeased, ErrLimit. A Topic does
// the same for typed bodies.
func (c *Client) Push(ctx context.Context, queue string, body []byte, opts ...PushOption) (Pushed, error) {
	return c.pushOne(ctx, NewDraft(queue, body, opts...))
}

// Rearm resets the due time of the message with this key and keeps its body. If there is no
// such message, it pushes one with the given body and options. ErrLeased when a worker
// already holds the message.
func (c *Client) Rearm(ctx context.Context, queue, key string, due Due, body []byte, opts ...PushOption) (Pushed, error) {
	m := NewDraft(queue, body, opts...)
	m.Key, m.Due, m.OnConflict = key, due.when, Rearm
	return c.pushOne(ctx, m)
}

func (c *Client) pushOne(ctx context.Context, m Draft) (Pushed, error) {
	if c.outerPush != nil {
		return c.oneViaMiddleware(ctx, m)
	}
	return c.innerPushOne(ctx, &m)
}

// innerPushOne pushes one message, inside all middleware. It takes a pointer so that the
// caller's stack need not grow.
func (c *Client) innerPushOne(ctx context.Context, m *Draft) (Pushed, error) {
	const op = "push"
	if err := c.begin(ctx, op, m.Queue); err != nil {
		return Pushed{}, err
	}
	if err := c.valid(op, m); err != nil {
		return Pushed{}, err
	}
	r, err := c.push(ctx, m)
	return pushed(m, r), calls.Fail(op, Ref{Queue: m.Queue, Key: m.Key}, cmp.Or(err, r.Err))
}

func (c *Client) push(ctx context.Context, m *Draft) (engine.PushResult, error) {
	if c.pushes != nil {
		return c.pushShared(ctx, m)
	}
	rs, err := c.eng.Push(ctx, []Draft{*m})
	if err != nil {
		return engine.PushResult{}, err
	}
	return rs[0], nil
}

// pushShared pushes one message in a call shared with others.
func (c *Client) pushShared(ctx context.Context, draft *Draft) (engine.PushResult, error) {
	m := *draft
	// The caller may reuse its slices if ctx ends early.
	m.Body, m.Headers, m.Terms = slices.Clone(m.Body), slices.Clone(m.Headers), m.Terms.Clone()
	r, err := c.pushes.Do(ctx, m)
	for p := (calls.BusyRetry{}); err == nil && p.Again(ctx, r.Err); {
		r, err = c.pushes.Do(ctx, m)
	}
	r.Err = calls.Overdue(ctx, r.Err)
	return r, calls.Overdue(ctx, err)
}

// valid rejects a message that is invalid, or that this engine does not support.
func (c *Client) valid(op string, m *Draft) error {
	if err := m.Validate(op, c.maxBody); err != nil {
		return err
	}
	ref := Ref{Queue: m.Queue, Key: m.Key}
	if err := c.caps.CheckTerms(op, ref, &m.Terms); err != nil {
		return err
	}
	if !c.caps.AnyDelay() {
		return c.caps.CheckWhen(op, ref, m.Due, c.now())
	}
	return nil
}

func pushed(m *Draft, r engine.PushResult) Pushed {
	return Pushed{Outcome: r.Outcome, ID: r.ID, Queue: m.Queue, Key: m.Key, Due: r.Due, State: r.State, Ending: r.Ending, Ended: r.Ended}
}

// PushMany pushes drafts; each succeeds or fails alone, with its error in Pushed.Err; see
// JoinErrors. The returned error is for the call as a whole. At most 10,000 at once.
func (c *Client) PushMany(ctx context.Context, drafts []Draft) ([]Pushed, error) {
	return c.pushMany(ctx, drafts, nil)
}

// pushMany is PushMany, but does not push drafts that have an error in bad. bad may be nil.
func (c *Client) pushMany(ctx context.Context, drafts []Draft, bad []error) ([]Pushed, error) {
	if c.outerPush != nil {
		return c.manyViaMiddleware(ctx, drafts, bad)
	}
	return c.innerPushMany(ctx, drafts, bad)
}

// innerPushMany is pushMany inside all middleware.
func (c *Client) innerPushMany(ctx context.Context, drafts []Draft, bad []error) ([]Pushed, error) {
	const op = "push"
	if err := c.beginBatch(ctx, op, len(drafts)); err != nil {
		return nil, err
	}
	good, errs := calls.Sift(drafts, func(i int) error {
		if bad != nil && bad[i] != nil {
			return bad[i]
		}
		return c.valid(op, &drafts[i])
	})
	out := make([]Pushed, len(drafts))
	for i, err := range errs {
		out[i] = Pushed{Queue: engine.Clip(drafts[i].Queue), Key: engine.Clip(drafts[i].Key), Err: err}
	}
	if len(good.Items) == 0 {
		return out, nil
	}
	rs, err := c.eng.Push(ctx, good.Items)
	if err != nil {
		return nil, calls.Fail(op, Ref{}, err)
	}
	for j, r := range rs {
		m := &good.Items[j]
		p := &out[good.At(j)]
		*p = pushed(m, r)
		p.Err = calls.Fail(op, Ref{Queue: m.Queue, Key: m.Key}, r.Err)
	}
	return out, nil
}

// PushAtomic pushes all messages or none; if none, it returns the error of the first that
// failed. ErrUnsupported when the engine has no atomic pushes; ErrTooLarge for more than
// MaxAtomic messages, or more than MaxAtomicBytes of bodies, headers and keys together.
func (c *Client) PushAtomic(ctx context.Context, drafts []Draft) ([]Pushed, error) {
	if c.outerPush != nil && len(drafts) > 0 {
		return c.viaMiddleware(ctx, PushCall{Drafts: drafts, Atomic: true})
	}
	return c.innerPushAtomic(ctx, drafts)
}

// innerPushAtomic is PushAtomic inside all middleware.
func (c *Client) innerPushAtomic(ctx context.Context, drafts []Draft) ([]Pushed, error) {
	const op = "push"
	if err := c.beginBatch(ctx, op, len(drafts)); err != nil {
		return nil, err
	}
	p, ok := c.eng.(engine.AtomicPusher)
	if err := c.able(ok && c.caps.Atomic, op, "", "atomic batches"); err != nil {
		return nil, err
	}
	for i := range drafts {
		if err := c.valid(op, &drafts[i]); err != nil {
			return nil, err
		}
	}
	if len(drafts) == 0 {
		return nil, nil
	}
	rs, err := p.PushAtomic(ctx, drafts)
	if err != nil {
		return nil, calls.Fail(op, Ref{}, err)
	}
	out := make([]Pushed, len(rs))
	for i, r := range rs {
		out[i] = pushed(&drafts[i], r)
	}
	return out, nil
}

func (c *Client) beginBatch(ctx context.Context, op string, n int) error {
	if err := engine.CheckBatch(op, n); err != nil {
		return err
	}
	return c.begin(ctx, op, "")
}

// PushDraft is Push for a draft.
func (c *Client) PushDraft(ctx context.Context, m Draft) (Pushed, error) {
	return c.pushOne(ctx, m)
}
