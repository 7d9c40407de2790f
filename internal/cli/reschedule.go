package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

func (p *Program) rescheduleCommand() *cobra.Command {
	var (
		arg refArg
		due dueFlags

		filter filterFlags
		all    bool
	)
	cmd := p.client(refuseIt, &cobra.Command{
		Use:   "reschedule QUEUE KEY --in DELAY|--at TIME",
		Short: "Change the due time of a message, or of many",
		Long: `Reschedule moves a scheduled or ready message to another time, and sets its attempt to 0.
Without KEY it moves the messages that the flags choose, or with --all every scheduled or
ready one, to the same time. Moving all asks first, or needs --yes.`,
		Example: `  tarry reschedule order.unpaid 42 --in 2h
  tarry reschedule order.unpaid --id 1234 --at 2030-01-02T15:04:05Z
  tarry reschedule order.unpaid --due-before 10m --in 10m
  tarry reschedule order.unpaid --all --in 1h --yes`,
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		d, err := due.due(cmd, true)
		if err != nil {
			return err
		}
		if all || filter.given(cmd) {
			return p.rescheduleMany(c, cmd, args[0], &filter, d)
		}
		ref, _, err := arg.ref(args[1:])
		if err != nil {
			return err
		}
		return p.reschedule(ctx, c, args[0], ref, d, "rescheduled")
	})
	arg.add(cmd)
	one, many := cmd.Args, func() bool { return all || filter.given(cmd) }
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case !many() && filter.Limit != 0:
			return usagef("choose with --all, --due-before, --error, …", "--limit is for many messages")
		case !many():
			return one(cmd, args)
		case arg.id.given || len(args) > 1:
			return usagef("leave KEY and --id away", "one message is named, and flags that choose many are given")
		}
		return checkArgs(cmd, len(args), []string{"QUEUE"}, 1)
	}
	due.add(cmd)
	filter.due(p, cmd)
	filter.limit(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all scheduled and ready messages")
	p.yesFlag(cmd)
	return cmd
}

// thatWait are the states of messages that wait, which can still be moved or cancelled.
var thatWait = []tarry.State{tarry.Scheduled, tarry.Ready}

// rescheduleMany moves the messages that match a filter.
func (p *Program) rescheduleMany(c *tarry.Client, cmd *cobra.Command, queue string, filter *filterFlags, d tarry.Due) error {
	return p.sweepAndShow(cmd, c, queue, sweep{
		do: "reschedule", done: "rescheduled", flags: filter, states: thatWait, mild: true,
		run: func(ctx context.Context, f tarry.Filter, progress ...func(tarry.Swept)) (tarry.Swept, error) {
			return c.RescheduleWhere(ctx, f, d, progress...)
		},
	})
}

// reschedule moves a message and prints the result. done is the word for what was done.
func (p *Program) reschedule(ctx context.Context, c *tarry.Client, queue string, ref tarry.Ref, d tarry.Due, done string) error {
	m, err := c.Reschedule(ctx, ref.Of(queue), d)
	if err != nil {
		return err
	}
	return p.show(messageJSON(&m, false), "%s %s %s, due %s", done, queue, refText(ref), p.dueText(m.Due))
}
