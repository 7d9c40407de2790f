package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

func (p *Program) purgeCommand() *cobra.Command {
	var (
		filter         filterFlags
		dead, finished bool
	)
	cmd := p.client(refuseIt, &cobra.Command{
		Use:   "purge QUEUE",
		Short: "Remove a queue's scheduled and ready messages",
		Long: `Purge removes the messages that are scheduled or ready when it begins. With --dead it also
removes dead messages, with --finished remembered keys and the finished messages listed;
leased messages stay. The keys of removed messages are free again. With flags that choose messages it cancels those instead,
the earliest due first; their keys are remembered if their pushes asked for that. It asks
first, or needs --yes.`,
		Example: `  tarry purge order.unpaid --yes
  tarry purge order.unpaid --due-before 1h --key-prefix test-`,
		Args: exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		if filter.given(cmd) || filter.Limit != 0 {
			if dead || finished {
				return usagef("tarry dead drop chooses among dead messages", "--dead and --finished take all there are")
			}
			return p.sweepAndShow(cmd, c, args[0], sweep{do: "cancel", done: "cancelled", flags: &filter, states: thatWait, run: c.CancelWhere})
		}
		q, err := c.Queue(ctx, args[0])
		if err != nil {
			return err
		}
		n, also := q.Scheduled+q.Ready, tarry.PurgeAlso(0)
		if dead {
			n, also = n+q.Dead, also|tarry.PurgeDead
		}
		if finished {
			n, also = n+q.Finished+q.History, also|tarry.PurgeFinished
		}
		if err := p.confirm(cmd.Context(), fmt.Sprintf("remove %s of %s for good", counted(n, "message"), args[0])); err != nil {
			return err
		}
		// No timeout: a purge may take long, and a person may think for long.
		n, err = c.Purge(cmd.Context(), args[0], also)
		if err != nil {
			return midway(cmd.Context(), err, n, "removed")
		}
		return p.showCount("purged", args[0], n, 0)
	})
	filter.due(p, cmd)
	filter.limit(cmd)
	cmd.Flags().BoolVar(&dead, "dead", false, "dead messages too")
	cmd.Flags().BoolVar(&finished, "finished", false, "remembered keys and listed finished messages too")
	p.yesFlag(cmd)
	return cmd
}
