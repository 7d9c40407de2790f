package cli

import (
	"context"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

func (p *Program) cancelCommand() *cobra.Command {
	var arg refArg
	cmd := p.client(refuseIt, &cobra.Command{
		Use:        "cancel QUEUE KEY",
		SuggestFor: []string{"delete", "remove", "rm"},
		Short:      "Cancel a message before it is handled",
		Long: `Cancel removes a scheduled or ready message. Once it has returned, no worker gets the
message. A leased message is not cancelled (exit code 4). With --id it also drops a
dead message.`,
		Example: "  tarry cancel order.unpaid 42\n  tarry cancel order.unpaid --id 1234",
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		ref, _, err := arg.ref(args[1:])
		if err != nil {
			return err
		}
		ref.By = userAtHost()
		if err := c.Cancel(ctx, ref.Of(args[0])); err != nil {
			return err
		}
		object := map[string]string{"queue": args[0], "outcome": "cancelled"}
		if ref.ID != 0 {
			object["id"] = ref.ID.String()
		} else {
			object["key"] = ref.Key
		}
		return p.show(object, "cancelled %s %s", args[0], refText(ref))
	})
	arg.add(cmd, 0)
	return cmd
}

// userAtHost names the user of the command; "" if it is not known, or no name. A server goes by
// the token or address instead.
func userAtHost() string {
	u, err := user.Current()
	host, _ := os.Hostname()
	if err != nil || engine.CheckWorker("cancel", "", u.Username+"@"+host) != nil {
		return ""
	}
	return u.Username + "@" + host
}

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
	arg.add(cmd, 0)
	one, many := cmd.Args, func() bool { return all || filter.given(cmd) }
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case !many() && filter.Limit != 0:
			return usagef("choose with --all, --due-before, --error, …", "--limit is for many messages")
		case !many():
			return one(cmd, args)
		case arg.id != "" || len(args) > 1:
			return usagef("leave KEY and --id away", "one message is named, and flags that choose many are given")
		}
		return exactly("QUEUE")(cmd, args)
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

func (p *Program) rearmCommand() *cobra.Command {
	var (
		arg     refArg
		due     dueFlags
		message messageFlags
	)
	cmd := p.client(makeIt, &cobra.Command{
		Use:   "rearm QUEUE KEY [BODY|-] --in DELAY|--at TIME",
		Short: "Postpone a message, or create it: a heartbeat",
		Long: `Rearm gives the message with this key a new due time and keeps its body. If there is no such
message, it creates one with the given body and flags. With --id it never creates one.`,
		Example: "  tarry rearm connections conn-7 '\"close it\"' --in 30s",
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		ref, rest, err := arg.ref(args[1:])
		if err != nil {
			return err
		}
		d, err := due.due(cmd, true)
		if err != nil {
			return err
		}
		if ref.ID != 0 {
			if len(rest) > 0 {
				return usagef("an id names a message that has one already", "rearm by --id takes no body")
			}
			return p.reschedule(ctx, c, args[0], ref, d, "rearmed")
		}
		var body []byte
		if len(rest) > 0 {
			if body, err = p.readBody(args[0], rest[0], c.MaxBody()); err != nil {
				return err
			}
		}
		m, err := message.draft(args[0], body)
		if err != nil {
			return err
		}
		m.Key, m.Due, m.OnConflict = ref.Key, d.When(), tarry.Rearm
		p.warnReserved(m.Queue)
		r, err := c.PushDraft(ctx, m)
		if err != nil {
			return conflictHint(err, r)
		}
		return p.showPushed(r, tarry.Rearm)
	})
	arg.add(cmd, 1)
	due.add(cmd)
	message.add(cmd)
	return cmd
}

// refArg is the argument KEY of commands on one message, or the flag --id in its place.
type refArg struct{ id string }

// add adds the flag, and has cmd take so many arguments after KEY.
func (r *refArg) add(cmd *cobra.Command, others int) {
	cmd.Flags().StringVar(&r.id, "id", "", "name the message by its id instead of its key")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		names := []string{"QUEUE", "KEY"}
		if r.id != "" {
			names = names[:1]
		}
		return atMost(len(names)+others, names...)(cmd, args)
	}
}

// ref returns the message that the arguments after QUEUE name, and the remaining arguments.
func (r *refArg) ref(args []string) (ref tarry.Ref, rest []string, err error) {
	if r.id == "" {
		return tarry.ByKey(args[0]), args[1:], nil
	}
	id, err := parseID(r.id)
	return tarry.ByID(id), args, err
}

func parseID(s string) (tarry.ID, error) {
	id, err := tarry.ParseID(s)
	if err != nil {
		return 0, usagef("an id is a decimal number such as 42", "%q is not an id", s)
	}
	return id, nil
}

// refText returns the name of a message for people.
func refText(ref tarry.Ref) string {
	if ref.ID != 0 {
		return "id " + ref.ID.String()
	}
	return ref.Key
}
