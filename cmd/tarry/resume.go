package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

func (p *Program) resumeCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:     "resume QUEUE",
		Short:   "End a queue's pause",
		Example: "  tarry resume order.unpaid",
		Args:    exactly("QUEUE"),
	}
	cmd.RunE = p.present("resume", &t, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		if err := c.Resume(ctx, args[0]); err != nil {
			return err
		}
		o := p.printer(t.json)
		if err := o.line(map[string]string{"queue": args[0], "outcome": "resumed"}, "resumed %s", args[0]); err != nil {
			return err
		}
		return o.flush()
	})
	t.clientFlags(cmd)
	return cmd
}
