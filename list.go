package tarry

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// defaultPage is the default length of a page.
const defaultPage = 100

// Get looks a message up. By key it returns the live message, else the one whose key is
// remembered, else that which died or finished last and is listed; by id, any message that
// is live or listed. Else ErrNotFound.
func (c *Client) Get(ctx context.Context, ref Ref) (Info, error) {
	const op = "get"
	if err := c.beginRef(ctx, op, ref, c.caps.Get); err != nil {
		return Info{}, err
	}
	info, err := c.eng.Get(ctx, ref)
	return info, calls.Fail(op, ref, err)
}

// Peek returns for each queue the ready message that is leased first, and the zero Info where
// none is ready; a pause does not matter. It may lack body and headers. At most 10,000 queues.
func (c *Client) Peek(ctx context.Context, queues []string) ([]Info, error) {
	const op = "peek"
	o := operation{op: op, can: c.caps.Peek, invalid: cmp.Or(engine.CheckBatch(op, len(queues)), checkQueues(op, queues))}
	queues = slices.Clone(queues) // the caller may reuse its slice if ctx ends early
	return operate(ctx, c, o, func(e engine.Peeker) ([]Info, error) { return e.Peek(ctx, queues) })
}

// Find returns for each id the queue of the live or dead message that has it, and "" where
// none has. At most 10,000 ids.
func (c *Client) Find(ctx context.Context, ids []ID) ([]string, error) {
	o := operation{op: "find", can: c.caps.Find, invalid: engine.CheckBatch("find", len(ids))}
	ids = slices.Clone(ids)
	return operate(ctx, c, o, func(e engine.Finder) ([]string, error) { return e.Find(ctx, ids) })
}

// ListPage returns one page of a queue's messages in one state. Scheduled and ready messages
// are ordered by due time, leased ones by deadline, dead ones by time of death, finished ones
// by when they ended. A message that does not change meanwhile is on exactly one page. Limit
// is at most 1000; 0 means 100.
func (c *Client) ListPage(ctx context.Context, q ListQuery) (Page, error) {
	const op = "list"
	q.Limit = cmp.Or(q.Limit, defaultPage)
	o := operation{op: op, queue: q.Queue, can: c.caps.List || c.caps.ListDead, invalid: cmp.Or(engine.CheckQueue(op, q.Queue), q.Check(), c.caps.CheckList(&q))}
	return operate(ctx, c, o, func(e engine.Lister) (Page, error) { return e.List(ctx, q) })
}

// List yields all messages of a queue in one state, with bodies, page by page. It stops
// after the first error. ListWhere yields a selection.
func (c *Client) List(ctx context.Context, queue string, state State) iter.Seq2[Info, error] {
	return c.ListWhere(ctx, Filter{Queue: queue, States: []State{state}, Body: true})
}

// Filter chooses messages of a queue, for ListWhere, RedriveWhere, DropWhere, CancelWhere
// and RescheduleWhere. A message is chosen when it meets every condition that is set.
//
//	tarry.Filter{Queue: "order.unpaid", From: yesterday, Error: "timeout"}
type Filter struct {
	Queue  string
	States []State // empty: all that the call works on, but finished ones

	// From and To bound the time by which a state is ordered: due for scheduled and ready
	// messages, deadline for leased ones, death for dead ones, end for finished ones. To
	// itself is excluded.
	From, To time.Time

	Error     string           // text that LastError contains
	KeyPrefix string           // the start of the key
	Header    string           // a header's name, or its name, a colon or =, and its value; not for finished messages
	Match     func(*Info) bool // called for one message at a time

	Newest bool  // the latest first, in each state
	Limit  int64 // at most this many; 0: all
	Body   bool  // ListWhere and Match get messages with their bodies
}

// choosesAll reports whether a filter chooses every message of its states, the earliest first.
func (f *Filter) choosesAll() bool {
	return f.From.IsZero() && f.To.IsZero() && f.Error == "" && f.KeyPrefix == "" && f.Header == "" && f.Match == nil && !f.Newest
}

// sweepPage is how many messages are read, and changed, at a time.
const sweepPage = 500

// ListWhere yields the messages that a filter chooses: the scheduled ones, then the ready,
// the leased, the dead, and if asked for the finished, each state in the order of ListPage. A
// message that changes its state meanwhile may appear twice, or not at all. ListWhere stops
// after the first error.
// ErrUnsupported when the filter has bounds or Newest and the engine has no ranges.
func (c *Client) ListWhere(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if len(f.States) == 0 {
			f.States = []State{Scheduled, Ready, Leased, Dead}
		}
		err := f.check("list", Scheduled, Ready, Leased, Dead, Finished)
		left := f.Limit
		for i := 0; err == nil && i < len(f.States); i++ {
			q := f.query(f.States[i])
			for more := true; more && err == nil; more = q.After != "" {
				var p Page
				p, err = c.ListPage(ctx, q)
				for j := range p.Messages {
					if m := &p.Messages[j]; f.Chooses(m) {
						if !yield(*m, nil) {
							return
						}
						if left--; left == 0 {
							return
						}
					}
				}
				q.After = p.Next
			}
		}
		if err != nil {
			yield(Info{}, err)
		}
	}
}

// check rejects a negative limit, and states other than the given ones. It puts the filter's
// states into life-cycle order; a filter without states gets all that are given.
func (f *Filter) check(op string, states ...State) error {
	if f.Limit < 0 {
		return engine.Invalid(op, Ref{Queue: f.Queue}, "the limit %d is negative", f.Limit)
	}
	if f.Header != "" && slices.Contains(f.States, Finished) {
		return engine.Invalid(op, Ref{Queue: f.Queue}, "the filter asks for a header, and finished messages have none")
	}
	for _, s := range f.States {
		if !slices.Contains(states, s) {
			return engine.Invalid(op, Ref{Queue: f.Queue}, "the filter asks for messages that are %s; allowed are %v", s, states)
		}
	}
	if len(f.States) == 0 {
		f.States = states
	}
	f.States = slices.Compact(slices.Sorted(slices.Values(f.States)))
	return nil
}

// query returns the query for the messages in one state that a filter chooses from.
func (f *Filter) query(s State) ListQuery {
	q := ListQuery{Queue: f.Queue, State: s, From: f.From, To: f.To, Newest: f.Newest, Limit: sweepPage, Body: f.Body}
	if f.Body {
		q.Limit = defaultPage
	}
	return q
}

// Chooses reports whether a message meets all conditions but States, From and To.
func (f *Filter) Chooses(m *Info) bool {
	return strings.Contains(m.LastError, f.Error) && strings.HasPrefix(m.Key, f.KeyPrefix) &&
		(f.Header == "" || slices.ContainsFunc(m.Headers, f.hasHeader)) && (f.Match == nil || f.Match(m))
}

// hasHeader reports whether h is the header that f asks for.
func (f *Filter) hasHeader(h MessageHeader) bool {
	rest, ok := strings.CutPrefix(f.Header, h.Name)
	return ok && (rest == "" || rest == ":"+h.Value || rest == "="+h.Value)
}
