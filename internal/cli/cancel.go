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
	arg.add(cmd)
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
