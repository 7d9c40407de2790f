package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/names"
)

// warnReserved warns if a queue has a reserved name.
func (p *Program) warnReserved(queue string) {
	if names.Reserved(queue) {
		fmt.Fprintln(p.Stderr, "tarry: names that begin with tarry. are tarry's own: no pattern such as * takes them in routes and for tokens")
	}
}

func (p *Program) pushCommand() *cobra.Command {
	var (
		due        dueFlags
		message    messageFlags
		key        string
		onConflict string
	)
	cmd := p.client(makeIt, &cobra.Command{
		Use:   "push QUEUE BODY|-",
		Short: "Push a message, due now, after a delay or at a time",
		Long: `Push stores a message until it is due. The body is the argument, or standard input if the
argument is "-". Push returns once the message is as durable as the store makes it.`,
		Example: `  tarry push order.unpaid '{"order":42}' --in 30m --key 42
  tarry push reports - --at 2030-01-02T15:04:05Z < report.json`,
		Args: exactly("QUEUE", "BODY"),
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		d, err := due.due(cmd, false)
		if err != nil {
			return err
		}
		policy, err := engine.ParseConflict(onConflict)
		if err != nil {
			return usagef("it is reject, keep, replace, keep_due or rearm", "--on-conflict %q is unknown", onConflict)
		}
		body, err := p.readBody(args[0], args[1], c.MaxBody())
		if err != nil {
			return err
		}
		m, err := message.draft(args[0], body)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("key") && key == "" {
			return usagef("leave --key away for a message without a key", "the key is empty")
		}
		m.Key, m.Due, m.OnConflict = key, d.When(), policy
		p.warnReserved(m.Queue)
		r, err := c.PushDraft(ctx, m)
		if err != nil {
			return conflictHint(err, r)
		}
		return p.showPushed(r, policy)
	})
	due.add(cmd)
	f := cmd.Flags()
	f.StringVar(&key, "key", "", "your own name for the message, unique among the queue's live ones")
	f.StringVar(&onConflict, "on-conflict", "reject", "when a live message holds the key, or it is remembered: reject, keep, replace, keep_due or rearm")
	message.add(cmd)
	return cmd
}
