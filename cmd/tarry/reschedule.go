package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

func (p *Program) rescheduleCommand() *cobra.Command {
	var (
		t   target
		arg refArg
		due dueFlags
	)
	cmd := &cobra.Command{
		Use:     "reschedule QUEUE KEY --in DELAY|--at TIME",
		Short:   "Move the due time of a message",
		Long:    `Reschedule moves a scheduled or ready message, and sets its attempt to 0.`,
		Example: "  tarry reschedule order.unpaid 42 --in 2h\n  tarry reschedule order.unpaid --id 1234 --at 2030-01-02T15:04:05Z",
	}
	cmd.RunE = p.with(&t, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		ref, _, err := arg.ref(args[1:])
		if err != nil {
			return err
		}
		d, err := due.due(cmd, true)
		if err != nil {
			return err
		}
		return p.reschedule(ctx, t.json, c, args[0], ref, d)
	})
	arg.add(cmd)
	due.add(cmd)
	t.clientFlags(cmd)
	return cmd
}

// reschedule moves a message and prints what it has become.
func (p *Program) reschedule(ctx context.Context, asJSON bool, c *tarry.Client, queue string, ref tarry.Ref, d tarry.Due) error {
	m, err := c.Reschedule(ctx, ref.Of(queue), d)
	if err != nil {
		return err
	}
	o := p.printer(asJSON)
	if err := o.line(messageJSON(&m, false), "rescheduled %s %s, due %s", queue, refText(ref), p.dueText(m.Due)); err != nil {
		return err
	}
	return o.flush()
}
