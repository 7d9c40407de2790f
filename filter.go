package tarry

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Filter chooses messages of a queue, for ListWhere, RedriveWhere, DropWhere, CancelWhere
// and RescheduleWhere. A message is chosen when all of it holds; what is zero holds for
// every message.
//
//	tarry.Filter{Queue: "order.unpaid", From: yesterday, Error: "timeout"}
type Filter struct {
	Queue  string
	States []State // any of Scheduled, Ready, Leased and Dead that the call is for; empty: all of those

	// From and To bound the time by which the states are ordered: due of the scheduled and
	// the ready, deadline of the leased, death of the dead. To itself is excluded.
	From, To time.Time

	Error     string           // is part of LastError
	KeyPrefix string           // the key begins with it
	Match     func(*Info) bool // says so; it is called for one message after the other

	Newest bool  // each state the other way round: the latest first
	Limit  int64 // so many at most, the first; 0: all
	Body   bool  // ListWhere yields, and Match gets, messages with bodies
}

// all reports whether a filter chooses all that its states have, the first first.
func (f *Filter) all() bool {
	return f.From.IsZero() && f.To.IsZero() && f.Error == "" && f.KeyPrefix == "" && f.Match == nil && !f.Newest
}

// sweepPage is how many messages are looked at, and changed, at a time.
const sweepPage = 500

// ListWhere yields the messages that a filter chooses: the scheduled ones, then the ready,
// the leased and the dead, each as List does. One that changes its state meanwhile may be
// there twice, or not at all. It ends after the first error; ErrUnsupported where the
// filter has bounds or begins with the latest, and the engine has no ranges.
func (c *Client) ListWhere(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := f.check("list", Scheduled, Ready, Leased, Dead)
		left := f.Limit
		for i := 0; err == nil && i < len(f.States); i++ {
			q := f.query(f.States[i])
			for more := true; more && err == nil; more = q.After != "" {
				var p Page
				p, err = c.ListPage(ctx, q)
				for j := range p.Messages {
					if m := &p.Messages[j]; f.chooses(m) {
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

// check refuses a filter that is no good for a call on messages in such states, and has it
// name its states in the order in which messages go through them.
func (f *Filter) check(op string, states ...State) error {
	if f.Limit < 0 {
		return engine.Invalid(op, Ref{Queue: f.Queue}, "the limit %d is negative", f.Limit)
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

// query asks for the messages in one state among which a filter chooses.
func (f *Filter) query(s State) ListQuery {
	q := ListQuery{Queue: f.Queue, State: s, From: f.From, To: f.To, Newest: f.Newest, Limit: sweepPage, Body: f.Body}
	if f.Body {
		q.Limit = defaultPage
	}
	return q
}

// chooses reports whether a message, within the bounds, is chosen.
func (f *Filter) chooses(m *Info) bool {
	return strings.Contains(m.LastError, f.Error) && strings.HasPrefix(m.Key, f.KeyPrefix) && (f.Match == nil || f.Match(m))
}
