package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

func (p *Program) deadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead ls|redrive|drop",
		Short: "See to dead messages: list, bring back, drop",
		Long:  `Dead are the messages whose attempts are used up and those that a worker buried.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("usage: tarry dead ls|redrive|drop QUEUE", "what to do with dead messages is missing")
			}
			return usagef("usage: tarry dead ls|redrive|drop QUEUE", "unknown command %q for tarry dead", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(p.deadListCommand(), p.deadRedriveCommand(), p.deadDropCommand())
	return cmd
}

func (p *Program) deadListCommand() *cobra.Command {
	var (
		t    target
		list listFlags
	)
	cmd := &cobra.Command{
		Use:     "ls QUEUE",
		Short:   "List a queue's dead messages, the longest dead first",
		Example: "  tarry dead ls order.unpaid --body",
		Args:    exactly("QUEUE"),
	}
	cmd.RunE = p.with(&t, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		if list.limit == 0 {
			ctx = cmd.Context()
		}
		return p.list(ctx, c, args[0], []tarry.State{tarry.Dead}, list, t.json)
	})
	list.add(p, cmd)
	t.clientFlags(cmd)
	return cmd
}

func (p *Program) deadRedriveCommand() *cobra.Command {
	var (
		t     target
		limit int
	)
	cmd := &cobra.Command{
		Use:   "redrive QUEUE [ID…]",
		Short: "Make dead messages ready again, with all their attempts",
		Long: `Redrive makes the dead messages with these ids ready again, or without ids all of
them, the longest dead first. One whose key a live message holds by now is skipped.`,
		Example: "  tarry dead redrive order.unpaid\n  tarry dead redrive order.unpaid 17 18",
		Args:    atLeastQueue,
	}
	cmd.RunE = p.with(&t, func(_ context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		ids, err := parseIDs(args[1:])
		if err != nil {
			return err
		}
		if limit < 0 || (len(ids) > 0 && limit > 0) {
			return usagef("--limit is a number of messages, for a redrive without ids", "--limit %d does not fit here", limit)
		}
		r, err := c.Redrive(cmd.Context(), args[0], ids, limit)
		if err != nil {
			return err
		}
		o := p.printer(t.json)
		object := struct {
			Queue    string `json:"queue"`
			Outcome  string `json:"outcome"`
			Redriven int64  `json:"redriven"`
			Skipped  int64  `json:"skipped"`
		}{args[0], "redriven", r.Redriven, r.Skipped}
		text := ""
		if r.Skipped > 0 {
			text = fmt.Sprintf("; skipped %d that are not dead or whose key a live message holds", r.Skipped)
		}
		if err := o.line(object, "redriven %d messages of %s%s", r.Redriven, args[0], text); err != nil {
			return err
		}
		return o.flush()
	})
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many; 0: all")
	t.clientFlags(cmd)
	return cmd
}

func (p *Program) deadDropCommand() *cobra.Command {
	var (
		t   target
		yes bool
	)
	cmd := &cobra.Command{
		Use:   "drop QUEUE [ID…]",
		Short: "Drop dead messages for good",
		Long: `Drop removes the dead messages with these ids, or without ids all of them. It asks
first, or wants --yes. A message that is not dead stays.`,
		Example: "  tarry dead drop order.unpaid --yes\n  tarry dead drop order.unpaid 17 18 --yes",
		Args:    atLeastQueue,
	}
	cmd.RunE = p.with(&t, func(_ context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		ctx := cmd.Context() // a person may think for longer than the timeout
		ids, err := parseIDs(args[1:])
		if err != nil {
			return err
		}
		n := int64(len(ids))
		if n == 0 {
			q, err := c.Queue(ctx, args[0])
			if err != nil {
				return err
			}
			n = q.Dead
		}
		if err := p.confirm(yes, fmt.Sprintf("drop %d dead messages of %s for good", n, args[0])); err != nil {
			return err
		}
		if len(ids) > 0 {
			n, err = dropIDs(ctx, c, args[0], ids)
		} else {
			n, err = dropAll(ctx, c, args[0])
		}
		if err != nil {
			return err
		}
		return p.showCount(t.json, "dropped", args[0], n)
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	t.clientFlags(cmd)
	return cmd
}

func atLeastQueue(cmd *cobra.Command, args []string) error {
	return checkArgs(cmd, len(args), []string{"QUEUE"}, -1)
}

func parseIDs(args []string) ([]tarry.ID, error) {
	var ids []tarry.ID
	for _, a := range args {
		id, err := tarry.ParseID(a)
		if err != nil {
			return nil, usagef("an id is a decimal number such as 42", "%q is not an id", a)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// dropIDs drops messages one after another, and stops at the first that is not
// dead: cancelling it by id would remove it all the same.
func dropIDs(ctx context.Context, c *tarry.Client, queue string, ids []tarry.ID) (n int64, err error) {
	for _, id := range ids {
		m, err := c.Get(ctx, tarry.ByID(id).Of(queue))
		if err != nil {
			return n, err
		}
		if m.State != tarry.Dead {
			return n, &engine.Error{Op: "drop", Queue: queue, ID: id, Err: tarry.ErrNotFound,
				Hint: "it is " + m.State.String() + ", not dead; tarry cancel removes live messages"}
		}
		if err := c.Cancel(ctx, tarry.ByID(id).Of(queue)); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// dropAll drops page by page what is dead.
func dropAll(ctx context.Context, c *tarry.Client, queue string) (n int64, err error) {
	q := tarry.ListQuery{Queue: queue, State: tarry.Dead, Limit: 500}
	for {
		page, err := c.ListPage(ctx, q)
		if err != nil {
			return n, err
		}
		refs := make([]tarry.Ref, len(page.Messages))
		for i, m := range page.Messages {
			refs[i] = tarry.Ref{Queue: queue, ID: m.ID}
		}
		dropped, err := c.CancelMany(ctx, refs)
		if err != nil {
			return n, err
		}
		for _, d := range dropped {
			switch err := d.Err; {
			case err == nil:
				n++
			case !errors.Is(err, tarry.ErrNotFound) && !errors.Is(err, tarry.ErrLeased):
				return n, err
			}
		}
		if q.After = page.Next; page.Next == "" {
			return n, nil
		}
	}
}
