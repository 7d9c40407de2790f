package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

func (p *Program) resumeCommand() *cobra.Command {
	return p.client(refuseIt, &cobra.Command{
		Use:     "resume QUEUE",
		Short:   "End a queue's pause",
		Example: "  tarry resume order.unpaid",
		Args:    exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		if err := c.Resume(ctx, args[0]); err != nil {
			return err
		}
		return p.show(map[string]string{"queue": args[0], "outcome": "resumed"}, "resumed %s", args[0])
	})
}
