package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

func (p *Program) lsCommand() *cobra.Command {
	var (
		filter filterFlags
		name   string
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
		}
		if filter.Newest {
			slices.Reverse(states)
		}
		return p.list(ctx, c, cmd, &filter, args[0], states...)
	})
	cmd.Flags().StringVar(&name, "state", "", "scheduled, ready, leased, dead or finished (default: all but dead and finished)")
	cmd.Flags().StringVar(&filter.Header, "header", "", "only messages with this header: NAME, or NAME=VALUE")
	filter.stored(p, cmd)
	filter.listing(cmd)
	return cmd
}

// list prints the messages in some states that a filter chooses, one state after the other.
func (p *Program) list(ctx context.Context, c *tarry.Client, cmd *cobra.Command, filter *filterFlags, queue string, states ...tarry.State) error {
	f, err := filter.of(queue, states...)
	if err != nil {
		return err
	}
	if f.Limit == 0 || f.Error != "" || f.KeyPrefix != "" || f.Header != "" || f.Match != nil {
		ctx = cmd.Context() // may rightly take longer than the timeout
	}
	return p.listWhere(ctx, c, f)
}

func (p *Program) listWhere(ctx context.Context, c *tarry.Client, f tarry.Filter) error {
	states, most, only := f.States, f.Limit, tarry.Gone
	if len(states) == 1 {
		only = states[0]
	}
	o := p.printer()
	o.head(listHead(only, f.Body)...)
	n := int64(0)
	for _, state := range states {
		f.States, f.Limit = []tarry.State{state}, 0
		for m, err := range c.ListWhere(ctx, f) {
			if err != nil {
				return err
			}
			if n++; n == most+1 && most > 0 {
				return o.listed("there are more; --limit 0 lists all")
			}
			o.row(messageJSON(&m, f.Body), p.listCells(m, only, f.Body)...)
			if err := o.page(); err != nil {
				return err
			}
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
