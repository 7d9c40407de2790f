package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

// queueJSON is a queue as the HTTP API writes it.
type queueJSON struct {
	Queue       string  `json:"queue"`
	Scheduled   int64   `json:"scheduled"`
	Ready       int64   `json:"ready"`
	Leased      int64   `json:"leased"`
	Dead        int64   `json:"dead"`
	NextDue     *string `json:"next_due"`
	OldestReady *string `json:"oldest_ready"`
	Paused      bool    `json:"paused"`
	PausedUntil string  `json:"paused_until,omitempty"`
}

func (p *Program) queuesCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:     "queues [QUEUE…]",
		Short:   "Show what the queues hold",
		Long:    `Queues shows all queues that hold something or are paused, or those named.`,
		Example: "  tarry queues\n  tarry queues order.unpaid --json",
		Args:    cobra.ArbitraryArgs,
	}
	cmd.RunE = p.with(&t, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		o := p.printer(t.json)
		o.head("QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", "NEXT DUE", "OLDEST READY", "PAUSED")
		for _, name := range args {
			q, err := c.Queue(ctx, name)
			if err != nil {
				return err
			}
			if err := p.showQueue(o, q); err != nil {
				return err
			}
		}
		for after := ""; len(args) == 0; {
			queues, next, err := c.Queues(ctx, after, 1000)
			if err != nil {
				return err
			}
			for _, q := range queues {
				if err := p.showQueue(o, q); err != nil {
					return err
				}
			}
			if after = next; next == "" {
				break
			}
			if err := o.page(); err != nil {
				return err
			}
		}
		return o.flush()
	})
	t.clientFlags(cmd)
	return cmd
}

func (p *Program) showQueue(o *printer, q tarry.QueueInfo) error {
	j := queueJSON{
		Queue: q.Queue, Scheduled: q.Scheduled, Ready: q.Ready, Leased: q.Leased, Dead: q.Dead,
		Paused: q.Paused, PausedUntil: formatTime(q.PausedUntil),
	}
	if s := formatTime(q.NextDue); s != "" {
		j.NextDue = &s
	}
	if s := formatTime(q.OldestReady); s != "" {
		j.OldestReady = &s
	}
	paused := "-"
	switch {
	case q.Paused && q.PausedUntil.IsZero():
		paused = "for good"
	case q.Paused:
		paused = "until " + j.PausedUntil
	}
	return o.row(j, q.Queue, q.Scheduled, q.Ready, q.Leased, q.Dead,
		orDash(away(q.NextDue, p.Now())), orDash(away(q.OldestReady, p.Now())), paused)
}
