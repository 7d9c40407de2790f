package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
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
	arg.add(cmd)
	return cmd
}
