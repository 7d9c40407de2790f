package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// listFlags say which part of a list to print.
type listFlags struct {
	limit  int
	after  string
	body   bool
	bounds boundFlags
	newest bool
	dead   bool // for tarry dead ls: its bounds have other names
}

func (l *listFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&l.newest, "newest", false, "the other way round, the latest first")
	f.IntVar(&l.limit, "limit", 100, "print at most so many; 0: all")
	f.StringVar(&l.after, "after", "", "go on behind this cursor of the list before")
	f.BoolVar(&l.body, "body", false, "with the bodies")
}

func (p *Program) lsCommand() *cobra.Command {
	var (
		list   listFlags
		name   string
		filter tarry.Filter
	)
	cmd := p.client(showEmpty, &cobra.Command{
		Use:        "ls QUEUE",
		SuggestFor: []string{"list"},
		Short:      "List a queue's live messages",
		Long: `Ls lists live messages: scheduled and ready ones by due time, leased ones by the end of
their lease. --state lists one state only: dead messages by time of death, finished ones by
when they ended, as long as the queue's history has them.
--from and --to bound these times: each is a time, or a duration from now with a sign.
--key-prefix and --header choose among all these messages, which takes long where they are
many.`,
		Example: "  tarry ls order.unpaid --state scheduled --to +30m\n  tarry ls order.unpaid --state dead --from -2h --newest",
		Args:    exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		states := []tarry.State{tarry.Leased, tarry.Ready, tarry.Scheduled}
		if name != "" {
			s, err := engine.ParseState(name)
			if err != nil || s == tarry.Gone {
				return usagef("it is scheduled, ready, leased, dead or finished", "--state %q is unknown", name)
			}
			states = []tarry.State{s}
		} else if list.after != "" {
			return usagef("a cursor belongs to the list of one state", "--after needs --state")
		}
		if list.newest {
			slices.Reverse(states)
		}
		if filter.KeyPrefix != "" || filter.Header != "" {
			if list.after != "" {
				return usagef("bound the list with --from and --to", "--after does not go with --key-prefix and --header")
			}
			filter.Queue, filter.From, filter.To = args[0], list.bounds.from, list.bounds.to
			return p.listWhere(cmd.Context(), c, filter, states, list)
		}
		if list.limit == 0 {
			ctx = cmd.Context()
		}
		return p.list(ctx, c, args[0], states, list)
	})
	cmd.Flags().StringVar(&name, "state", "", "scheduled, ready, leased, dead or finished (default: all but dead and finished)")
	cmd.Flags().StringVar(&filter.KeyPrefix, "key-prefix", "", "only messages whose key begins with this")
	cmd.Flags().StringVar(&filter.Header, "header", "", "only messages with this header: NAME, or NAME=VALUE")
	list.bounds.add(p, cmd)
	list.add(cmd)
	return cmd
}

// check refuses a part of a list that cannot be.
func (l *listFlags) check() error {
	switch b := &l.bounds; {
	case l.limit < 0:
		return usagef("0 prints all", "--limit %d is negative", l.limit)
	case !b.from.IsZero() && !b.to.IsZero() && !b.from.Before(b.to):
		return usagef("--to itself is left out", "there is nothing between --from %s and --to %s", formatTime(b.from), formatTime(b.to))
	}
	return nil
}

// onlyOf returns the state if there is only one.
func onlyOf(states []tarry.State) (only tarry.State) {
	if len(states) == 1 {
		only = states[0]
	}
	return only
}

// listWhere prints the messages in some states that a filter chooses.
func (p *Program) listWhere(ctx context.Context, c *tarry.Client, f tarry.Filter, states []tarry.State, l listFlags) error {
	if err := l.check(); err != nil {
		return err
	}
	o, only := p.printer(), onlyOf(states)
	o.head(listHead(only, l.body)...)
	f.Body, f.Newest = l.body, l.newest
	n := 0
	var first time.Time
	for _, state := range states {
		f.States = []tarry.State{state}
		for m, err := range c.ListWhere(ctx, f) {
			if err != nil {
				return err
			}
			if n == 0 {
				first = m.Died
			}
			if l.limit > 0 && n == l.limit {
				if l.dead {
					return o.listed(goOnDied(first, m.Died, l.newest))
				}
				return o.listed("there are more; --limit 0 lists all")
			}
			n++
			o.row(messageJSON(&m, l.body), p.listCells(m, only, l.body)...)
			if err := o.page(); err != nil {
				return err
			}
		}
	}
	return o.listed("")
}

// list prints the messages in some states, page by page.
func (p *Program) list(ctx context.Context, c *tarry.Client, queue string, states []tarry.State, l listFlags) error {
	if err := l.check(); err != nil {
		return err
	}
	o, only := p.printer(), onlyOf(states)
	o.head(listHead(only, l.body)...)
	left := l.limit
	for _, state := range states {
		q := tarry.ListQuery{Queue: queue, State: state, After: l.after, Body: l.body, From: l.bounds.from, To: l.bounds.to, Newest: l.newest}
		for more := true; more; more = q.After != "" {
			q.Limit = 500
			if l.limit > 0 {
				if left <= 0 {
					return o.listed(l.goOn(state, q.After))
				}
				q.Limit = min(q.Limit, left)
			}
			page, err := c.ListPage(ctx, q)
			if err != nil {
				return err
			}
			for _, m := range page.Messages {
				o.row(messageJSON(&m, l.body), p.listCells(m, only, l.body)...)
			}
			if err := o.page(); err != nil {
				return err
			}
			left -= len(page.Messages)
			q.After = page.Next
		}
	}
	return o.listed("")
}

// listed ends a list, and says if there are more messages or none.
func (o *printer) listed(more string) error {
	if err := o.flush(); err != nil {
		return err
	}
	if o.all == 1 { // only the head
		more = "no messages"
	}
	if more != "" {
		fmt.Fprintln(o.p.Stderr, more)
	}
	return nil
}

// goOn says how to list more: from a cursor of a state on, or, before the first page of a
// state, only that there may be more. Relative bounds become the times they stood for, so that
// they stay the same.
func (l *listFlags) goOn(state tarry.State, after string) string {
	if after == "" {
		return "there may be more; --limit 0 lists all"
	}
	flags, from, to := " --state "+state.String(), "from", "to"
	if l.dead {
		flags, from, to = "", "since", "until"
	}
	if t := l.bounds.from; !t.IsZero() {
		flags += " --" + from + " " + t.UTC().Format(time.RFC3339Nano)
	}
	if t := l.bounds.to; !t.IsZero() {
		flags += " --" + to + " " + t.UTC().Format(time.RFC3339Nano)
	}
	if l.newest {
		flags += " --newest"
	}
	return "there are more; go on with" + flags + " --after " + shown(after) + ", or --limit 0 for all"
}

// listHead is the head of a list. only is its state, if it has only one.
func listHead(only tarry.State, body bool) []any {
	head := []any{"ID", "KEY", "STATE", "DUE", "ATTEMPT"}
	switch only {
	case tarry.Leased:
		head = append(head, "WORKER")
	case tarry.Dead:
		head = append(head, "LAST ERROR")
	case tarry.Finished:
		head = append(head, "ENDING", "ENDED", "BY")
	}
	if body {
		head = append(head, "BODY")
	}
	return head
}

func (p *Program) listCells(m tarry.Info, only tarry.State, body bool) []any {
	attempt := fmt.Sprintf("%d/%d", m.Attempt, m.MaxAttempts)
	if only == tarry.Finished { // the policy has gone
		attempt = fmt.Sprint(m.Attempt)
	}
	cells := []any{m.ID, cut(m.Key), m.State, p.dueText(m.Due), attempt}
	switch only {
	case tarry.Leased:
		cells = append(cells, cut(m.Worker))
	case tarry.Dead:
		cells = append(cells, cell(m.LastError))
	case tarry.Finished:
		cells = append(cells, m.Ending, p.dueText(m.Ended), cut(m.Worker))
	}
	if body {
		cells = append(cells, cell(readable(m.Body)))
	}
	return cells
}
