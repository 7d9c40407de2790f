package cli

import (
	"github.com/spf13/cobra"
)

func (p *Program) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes commands and flags in your shell",
		Example: `  source <(tarry completion bash)
  tarry completion fish > ~/.config/fish/completions/tarry.fish`,
		ValidArgs: shells,
		Args:      exactly("SHELL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(p.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(p.Stdout)
			case "fish":
				return root.GenFishCompletion(p.Stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(p.Stdout)
			}
			return usagef("it is bash, zsh, fish or powershell", "unknown shell %q", args[0])
		},
	}
}
