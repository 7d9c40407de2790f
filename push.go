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
// promises. Errors: ErrInvalid, ErrTooLarge, ErrExists, ErrLeased, ErrLeaseLost, ErrLimit. A
// Topic does the same for typed bodies.
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

func (c *Client) push(ctx context.Context, m *Draft) (r engine.PushResult, err error) {
	switch {
	case c.pushes == nil:
		return c.pushAlone(ctx, m)
	case len(m.Body) > calls.MostShared:
		within, stop := context.WithTimeout(ctx, calls.Timeout)
		defer stop()
		r, err = c.pushAlone(within, m)
	default:
		r, err = c.pushShared(ctx, m)
	}
	r.Err = calls.Overdue(ctx, r.Err)
	return r, calls.Overdue(ctx, err)
}

// pushAlone pushes one message in a call of its own.
func (c *Client) pushAlone(ctx context.Context, m *Draft) (engine.PushResult, error) {
	rs, err := c.eng.Push(ctx, []Draft{*m})
	if err != nil {
		return engine.PushResult{}, err
	}
	return rs[0], nil
}

// pushShared pushes one message in a call shared with others.
func (c *Client) pushShared(ctx context.Context, draft *Draft) (engine.PushResult, error) {
	m := *draft
	if ctx.Done() != nil || !c.caps.Prompt { // else the call ends before the caller may reuse its slices
		m.Body, m.Headers, m.Terms = slices.Clone(m.Body), slices.Clone(m.Headers), m.Terms.Clone()
	}
	r, err := c.pushes.Do(ctx, m)
	for p := (calls.BusyRetry{}); err == nil && p.Again(ctx, r.Err); {
		r, err = c.pushes.Do(ctx, m)
	}
	return r, err
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
	if c.outerPush != nil && len(drafts) > 0 {
		return c.viaMiddleware(ctx, PushCall{Drafts: drafts})
	}
	return c.innerPushMany(ctx, drafts)
}

// innerPushMany is PushMany inside all middleware.
func (c *Client) innerPushMany(ctx context.Context, drafts []Draft) ([]Pushed, error) {
	const op = "push"
	if err := c.beginBatch(ctx, op, len(drafts)); err != nil {
		return nil, err
	}
	good, errs := calls.Sift(drafts, func(i int) error { return c.valid(op, &drafts[i]) })
	out := refused(drafts, errs)
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

// refused returns a result for each draft, which so far has only its error.
func refused(drafts []Draft, errs []error) []Pushed {
	out := make([]Pushed, len(drafts))
	for i, err := range errs {
		out[i] = Pushed{Queue: engine.Clip(drafts[i].Queue), Key: engine.Clip(drafts[i].Key), Err: err}
	}
	return out
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
	p, ok := c.eng.(engine.AtomicPusher)
	if err := cmp.Or(c.beginBatch(ctx, op, len(drafts)), c.able(ok && c.caps.Atomic, op, "", "atomic batches")); err != nil {
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
	return cmp.Or(engine.CheckBatch(op, n), c.begin(ctx, op, ""))
}

// PushDraft is Push for a draft.
func (c *Client) PushDraft(ctx context.Context, m Draft) (Pushed, error) {
	return c.pushOne(ctx, m)
}

// A PushOption sets a property of a message to push. Later options win.
type PushOption interface{ apply(m *Draft) }

type pushOption func(m *Draft)

func (o pushOption) apply(m *Draft) { o(m) }

// Due is when a message may be handled. In and At make it, as an option of a push or the
// new time for Reschedule and Rearm.
type Due struct{ when When }

func (d Due) apply(m *Draft) { m.Due = d.when }

// When returns the due time in the form that engines take.
func (d Due) When() When { return d.when }

// In makes a message due d from now, by the engine's clock. d must not be negative. A
// message without In and At is due at once.
func In(d time.Duration) Due { return Due{When{In: d}} }

// At makes a message due at t, rounded up to the millisecond; at once if t is in the past.
// t must not be after the year 9999.
func At(t time.Time) Due { return Due{When{At: t}} }

// Key gives the message the caller's own name, 1 to 512 bytes of UTF-8, unique among the
// queue's live messages: an order id. The key is used to cancel, reschedule, look up and
// claim the message, and to recognise a repeated push.
func Key(key string) PushOption {
	return pushOption(func(m *Draft) { m.Key = key })
}

// OnConflict says what happens when a live message holds the key. Default Reject.
func OnConflict(c Conflict) PushOption {
	return pushOption(func(m *Draft) { m.OnConflict = c })
}

// ReplaceLeased lets the holder of a lease replace the message with the same key: new content
// and due time, attempt 0. The lease ends. ErrLeaseLost when token is not the newest lease of
// the live message with that key. A handler can so keep its progress in its message; it then
// returns Settled.
func ReplaceLeased(token string) PushOption {
	return pushOption(func(m *Draft) { m.OnConflict, m.Token = Replace, token })
}

// Priority orders messages that are ready at the same time: lower goes first. Default: the
// queue's settings, else 1024.
func Priority(p uint32) PushOption {
	return pushOption(func(m *Draft) { m.Priority = &p })
}

// Header adds a header, a name and a value, to the message. At most 64, of 8 KiB together.
func Header(name, value string) PushOption {
	return pushOption(func(m *Draft) {
		m.Headers = append(m.Headers, engine.Header{Name: name, Value: value})
	})
}

// ContentType sets the media type of the body; a Topic sets it from its codec.
func ContentType(t string) PushOption {
	return pushOption(func(m *Draft) { m.ContentType = t })
}

// MaxAttempts bounds how often the message is leased before it is dead: 1 to a million.
// Default: the queue's settings, else 20.
func MaxAttempts(n uint32) PushOption {
	return pushOption(func(m *Draft) { m.MaxAttempts = n })
}

// Backoff sets the delay after the first, second, … failed attempt; the last entry repeats.
// At most 64. Default: the queue's settings, else 1 s doubling up to 1 h, ±10 %.
func Backoff(delays ...time.Duration) PushOption {
	return pushOption(func(m *Draft) { m.Backoff = delays })
}

// TTR sets how long a lease of the message lasts, unless the lease call asks for another
// time. 1 ms to 24 h. Default: the queue's settings, else 1 min. Workers renew leases by
// themselves.
func TTR(d time.Duration) PushOption {
	return pushOption(func(m *Draft) { m.TTR = d })
}

// ExpireAfter drops the message if it would be leased later than d after its due time. 0:
// never. Default: the queue's settings, else never.
func ExpireAfter(d time.Duration) PushOption {
	return pushOption(func(m *Draft) { m.ExpireAfter = cmp.Or(d, engine.Never) })
}

// Remember keeps the message's key for d after an ack, cancel or expiry. Meanwhile a push
// with that key creates no message and reports how the old one ended. 0: not at all; at
// most ten years. Default: the queue's settings, else not at all.
func Remember(d time.Duration) PushOption {
	return pushOption(func(m *Draft) { m.Remember = cmp.Or(d, engine.Never) })
}

// Isolate says whether the message is isolated from its second attempt on, so that a
// message that kills its process takes no other with it. The lease of an isolated message
// ends separately from those leased with it. After a lapse the message is leased alone.
func Isolate(on bool) PushOption {
	return pushOption(func(m *Draft) { m.Terms.Isolate = &on })
}

// NewDraft returns a message to push with the options applied, for
// Client.PushMany and Client.PushAtomic.
func NewDraft(queue string, body []byte, opts ...PushOption) Draft {
	m := Draft{
		Queue:   queue,
		Content: engine.Content{Body: body},
	}
	for _, o := range opts {
		o.apply(&m)
	}
	return m
}
