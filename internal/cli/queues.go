package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

func (p *Program) queuesCommand() *cobra.Command {
	return p.client(showEmpty, &cobra.Command{
		Use:   "queues [QUEUE…]",
		Short: "Count the messages of each queue by state",
		Long: `Queues shows the queues named, or all that hold messages, are paused or have settings.
Finished counts the finished messages that are listed (in JSON: history), remembered the keys
of finished messages that are remembered (in JSON: finished).`,
		Example: "  tarry queues\n  tarry queues order.unpaid --json",
		Args:    cobra.ArbitraryArgs,
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		o := p.printer()
		o.head("QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", "FINISHED", "REMEMBERED", "NEXT DUE", "OLDEST READY", "PAUSED")
		for _, name := range args {
			q, err := c.Queue(ctx, name)
			if err != nil {
				return err
			}
			p.showQueue(o, q)
		}
		if len(args) > 0 {
			return o.flush()
		}
		for q, err := range c.AllQueues(ctx) {
			if err != nil {
				return err
			}
			p.showQueue(o, q)
			if err := o.page(); err != nil {
				return err
			}
		}
		return o.flush()
	})
}

func (p *Program) showQueue(o *printer, q tarry.QueueInfo) {
	o.row(asAPI(func(b []byte) []byte { return wire.QueueHolds.Append(b, &q) }), q.Queue, q.Scheduled, q.Ready, q.Leased, q.Dead, q.History, q.Finished,
		orDash(away(q.NextDue, p.Now())), orDash(away(q.OldestReady, p.Now())), pausedText(&q))
}

func pausedText(q *tarry.QueueInfo) string {
	switch {
	case q.Paused && q.PausedUntil.IsZero():
		return "until resumed"
	case q.Paused:
		return "until " + formatTime(q.PausedUntil)
	}
	return "-"
}
