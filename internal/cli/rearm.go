package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

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
		Example:     "  tarry rearm connections conn-7 '\"close it\"' --in 30s",
		Annotations: map[string]string{"body": "may follow"},
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
	arg.add(cmd)
	due.add(cmd)
	message.add(cmd)
	return cmd
}
