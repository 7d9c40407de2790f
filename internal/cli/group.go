package cli

import "github.com/spf13/cobra"

// group makes cmd a parent of the commands below it. By itself it does nothing.
func group(cmd *cobra.Command, usage string, below ...*cobra.Command) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef(usage, "tarry %s is missing what to do", cmd.Name())
		}
		return usagef(usage, "unknown command %q for tarry %s", args[0], cmd.Name())
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil }
	cmd.AddCommand(below...)
	return cmd
}
