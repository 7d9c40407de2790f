package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// listFlags say how much of a list to print.
type listFlags struct {
	limit int
	after string
	body  bool
}

func (l *listFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&l.limit, "limit", 100, "print at most so many; 0: all")
	f.StringVar(&l.after, "after", "", "go on behind this cursor of the list before")
	f.BoolVar(&l.body, "body", false, "with the bodies")
}

func (p *Program) lsCommand() *cobra.Command {
	var (
		t    target
		list listFlags
		name string
	)
	cmd := &cobra.Command{
		Use:   "ls QUEUE",
		Short: "List a queue's live messages",
		Long: `Ls lists the live messages in the order in which their states end: ready and
scheduled ones by due time, leased ones by the end of the lease. With --state it
lists one state alone, dead ones too.`,
		Example: "  tarry ls order.unpaid --state scheduled --limit 20",
		Args:    exactly("QUEUE"),
	}
	cmd.RunE = p.with(&t, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		states := []tarry.State{tarry.Leased, tarry.Ready, tarry.Scheduled}
		if name != "" {
			s, err := engine.ParseState(name)
			if err != nil || s == tarry.Gone {
				return usagef("it is scheduled, ready, leased or dead", "--state %q is unknown", name)
			}
			states = []tarry.State{s}
		} else if list.after != "" {
			return usagef("a cursor belongs to the list of one state", "--after needs --state")
		}
		if list.limit == 0 {
			ctx = cmd.Context()
		}
		return p.list(ctx, c, args[0], states, list, t.json)
	})
	cmd.Flags().StringVar(&name, "state", "", "scheduled, ready, leased or dead (default: all but dead)")
	list.add(cmd)
	t.clientFlags(cmd)
	return cmd
}

// list prints the messages of some states, page by page.
func (p *Program) list(ctx context.Context, c *tarry.Client, queue string, states []tarry.State, l listFlags, asJSON bool) error {
	if l.limit < 0 {
		return usagef("0 prints all", "--limit %d is negative", l.limit)
	}
	o := p.printer(asJSON)
	head := []string{"ID", "KEY", "STATE", "DUE", "ATTEMPT"}
	if states[0] == tarry.Dead {
		head = append(head, "LAST ERROR")
	}
	if l.body {
		head = append(head, "BODY")
	}
	o.head(head...)
	left, more := l.limit, ""
	for _, state := range states {
		q := tarry.ListQuery{Queue: queue, State: state, After: l.after, Body: l.body}
		for {
			q.Limit = 500
			if l.limit > 0 {
				q.Limit = min(q.Limit, left)
			}
			page, err := c.ListPage(ctx, q)
			if err != nil {
				return err
			}
			for _, m := range page.Messages {
				if err := o.row(messageJSON(&m, l.body), p.listCells(m, len(states) == 1 && state == tarry.Dead, l.body)...); err != nil {
					return err
				}
			}
			if err := o.page(); err != nil {
				return err
			}
			left -= len(page.Messages)
			q.After = page.Next
			if page.Next == "" {
				break
			}
			if l.limit > 0 && left <= 0 {
				more = fmt.Sprintf("there are more; go on with --state %s --after %s, or --limit 0 for all", state, shown(page.Next))
				if state == tarry.Dead {
					more = fmt.Sprintf("there are more; go on with --after %s, or --limit 0 for all", shown(page.Next))
				}
				break
			}
		}
		if l.limit > 0 && left <= 0 {
			if more == "" && state != states[len(states)-1] {
				more = "there may be more; --limit 0 lists all"
			}
			break
		}
	}
	if err := o.flush(); err != nil {
		return err
	}
	if more != "" {
		fmt.Fprintln(p.Stderr, more)
	}
	return nil
}

func (p *Program) listCells(m tarry.Info, dead, body bool) []any {
	cells := []any{m.ID, cut(m.Key), m.State, p.dueText(m.Due), fmt.Sprintf("%d/%d", m.Attempt, m.MaxAttempts)}
	if dead {
		cells = append(cells, cell(m.LastError))
	}
	if body {
		cells = append(cells, cell(readable(m.Body)))
	}
	return cells
}
