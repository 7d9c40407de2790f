package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

func (p *Program) pauseCommand() *cobra.Command {
	var d time.Duration
	cmd := p.client(refuseIt, &cobra.Command{
		Use:     "pause QUEUE",
		Short:   "Stop leasing messages of a queue for a while",
		Long:    `Pause stops the leasing of a queue. Pushes, cancels and messages that are already leased are not affected.`,
		Example: "  tarry pause order.unpaid --for 10m",
		Args:    exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("for") && d == 0 {
			return usagef("leave --for away to pause until tarry resume", "--for is 0")
		}
		if err := c.Pause(ctx, args[0], d); err != nil {
			return err
		}
		text := "until tarry resume " + args[0]
		object := map[string]string{"queue": args[0], "outcome": "paused"}
		if d > 0 {
			text = "for " + tarry.FormatDuration(d)
			object["for"] = tarry.FormatDuration(d)
		}
		return p.show(object, "paused %s %s", args[0], text)
	})
	cmd.Flags().Var(durationFlag(&d), "for", "how long (default: until resumed)")
	return cmd
}
