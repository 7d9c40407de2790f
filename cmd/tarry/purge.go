package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

func (p *Program) purgeCommand() *cobra.Command {
	var (
		t                   target
		dead, finished, yes bool
	)
	cmd := &cobra.Command{
		Use:   "purge QUEUE",
		Short: "Remove a queue's scheduled and ready messages",
		Long: `Purge removes what is scheduled or ready when it begins, with --dead the dead ones
too, and with --finished the keys that are remembered; never what workers hold. It asks first, or wants --yes.`,
		Example: "  tarry purge order.unpaid --yes",
		Args:    exactly("QUEUE"),
	}
	cmd.RunE = p.with(&t, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		q, err := c.Queue(ctx, args[0])
		if err != nil {
			return err
		}
		n, also := q.Scheduled+q.Ready, tarry.PurgeAlso(0)
		if dead {
			n, also = n+q.Dead, also|tarry.PurgeDead
		}
		if finished {
			n, also = n+q.Finished, also|tarry.PurgeFinished
		}
		if err := p.confirm(yes, fmt.Sprintf("remove %d messages of %s for good", n, args[0])); err != nil {
			return err
		}
		// A long purge is no reason to give up, nor is a person who thinks it over.
		n, err = c.Purge(cmd.Context(), args[0], also)
		if err != nil {
			if n > 0 {
				err = fmt.Errorf("%w; %d messages are gone, run it again for the rest", err, n)
			}
			return err
		}
		return p.showCount(t.json, "purged", args[0], n)
	})
	cmd.Flags().BoolVar(&dead, "dead", false, "dead messages too")
	cmd.Flags().BoolVar(&finished, "finished", false, "remembered keys too")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	t.clientFlags(cmd)
	return cmd
}

// showCount prints what was done to how many messages of a queue.
func (p *Program) showCount(asJSON bool, what, queue string, n int64) error {
	o := p.printer(asJSON)
	object := struct {
		Queue   string `json:"queue"`
		Outcome string `json:"outcome"`
		Count   int64  `json:"count"`
	}{queue, what, n}
	if err := o.line(object, "%s %d messages of %s", what, n, queue); err != nil {
		return err
	}
	return o.flush()
}
