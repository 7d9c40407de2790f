package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Program is one run of the command. It holds all of the outside world that the run uses, so
// that tests can run it in-process.
type Program struct {
	Args     []string  // without the program's name
	Env      []string  // KEY=value, as in os.Environ; the last of a name wins
	Stdin    io.Reader // message bodies and answers to questions
	Stdout   io.Writer // results; work lets several commands write to it at once
	Stderr   io.Writer // errors, questions, progress
	Terminal bool      // a person can answer a question
	Now      func() time.Time
	Self     string // path of this program, to start it again
	Limit    int64  // bytes of memory that the collector keeps this process below; 0: not set by Main

	// Reloads returns a channel of wishes to read the --config file again, until stop is
	// called.
	Reloads func() (wishes <-chan os.Signal, stop func())
	// Drains is the same for wishes that beanstalkd's clients put no more jobs.
	Drains func() (wishes <-chan os.Signal, stop func())

	settings settings
	target   target // of the client commands
	json     bool   // --json is given
	yes      bool   // --yes is given
	dryRun   bool   // --dry-run is given to a client command
	began    bool   // the call was valid, and its work has begun
}

// Run runs the command that Args name until it is done or ctx ends, and returns the exit code.
// When ctx ends, serve, work and bench stop in good order.
func (p *Program) Run(ctx context.Context) int {
	root := p.root()
	root.SetArgs(p.Args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if !p.began && !errors.As(err, new(*exitError)) { // an error of cobra's
		var name string
		if n, _ := fmt.Sscanf(err.Error(), "unknown command %q", &name); n == 1 { // cobra's text has several lines
			err = unknownCommand(root, name)
		} else {
			err = usagef("tarry help lists the commands", "%v", err)
		}
	}
	return p.report(ctx, err)
}

// Commands returns tarry's commands, for manual pages and completions.
func Commands() *cobra.Command { return new(Program).root() }

func (p *Program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tarry",
		Short: "Deliver messages later, and never early",
		Long: `tarry keeps messages until they are due and then delivers them, at least once.

Start a server with "tarry serve". The other commands talk to it, or use a store
directly with --store. Times are RFC 3339 (2030-01-02T15:04:05Z); durations are
1500ms, 30m, 48h or 7d.

Settings come from flags, else from the environment (TARRY_SERVER, …), else from
the JSON file named by --config or TARRY_CONFIG.

Exit codes: 0 done; 1 failed; 2 wrong usage or configuration; 3 not found;
4 conflict (exists, leased, not due, stale); 5 server or store not reachable.`,
		Version:       readBuild().text(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			p.began = true
			return p.settings.load(p, cmd)
		},
	}
	root.PersistentFlags().String("config", "", "JSON file with settings (TARRY_CONFIG)")
	root.SetFlagErrorFunc(wrongFlag)
	root.AddCommand(
		p.serveCommand(new(serveFlags)), p.beanstalkdCommand(),
		p.pushCommand(), p.cancelCommand(), p.getCommand(), p.rescheduleCommand(), p.rearmCommand(),
		p.statusCommand(), p.topCommand(), p.lsCommand(), p.queuesCommand(), p.queueCommand(), p.forecastCommand(),
		p.workCommand(), p.workersCommand(), p.deadCommand(), p.routeCommand(), p.intakeCommand(), p.scheduleCommand(), p.tokenCommand(),
		p.pauseCommand(), p.resumeCommand(), p.purgeCommand(),
		p.copyCommand(), p.migrateCommand(), p.backupCommand(), p.restoreCommand(), p.checkCommand(),
		p.demoCommand(), p.benchCommand(),
		p.versionCommand(),
	)
	markSettings(root)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.InitDefaultCompletionCmd() // it keeps the output
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Run, cmd.RunE = nil, help
		case "completion":
			group(cmd, "usage: tarry completion bash|zsh|fish|powershell")
		}
	}
	return root
}

// help is cobra's help, except that an unknown command is an error.
func help(cmd *cobra.Command, args []string) error {
	to, rest, err := cmd.Root().Find(args)
	if err != nil {
		return unknownCommand(cmd.Root(), args[0])
	}
	if to.HasSubCommands() && len(rest) > 0 {
		return usagef(to.CommandPath()+" --help lists those there are", "unknown command %q for %s", rest[0], to.CommandPath())
	}
	to.InitDefaultHelpFlag()
	return to.Help()
}

// unknownCommand returns the error for a command that does not exist, with likely names.
func unknownCommand(root *cobra.Command, name string) error {
	root.SuggestionsMinimumDistance = min(2, len(name)/3) // among short names, any two are within cobra's usual distance
	hint := "tarry help lists the commands"
	if meant := root.SuggestionsFor(name); len(meant) > 0 {
		hint = "did you mean tarry " + strings.Join(meant, " or tarry ") + "? " + hint
	}
	return usagef(hint, "unknown command %q", name)
}

// yesFlag adds the flag --yes.
func (p *Program) yesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.yes, "yes", false, "do not ask")
}

// wrongFlag returns the error for an unknown flag, with a likely name, or for an invalid
// value.
func wrongFlag(cmd *cobra.Command, err error) error {
	hint, line := cmd.CommandPath()+" --help shows the flags", err.Error()
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if meant := meantFlag(cmd.Flags(), unknown.GetSpecifiedName()); meant != "" {
			hint = "did you mean --" + meant + "? " + hint
		} else if cmd.Name() == "work" {
			hint = "put -- before the command: " + cmd.UseLine()
		}
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if n, ok := errors.AsType[*strconv.NumError](bad); ok { // its text is about Go functions
			line = fmt.Sprintf("invalid argument %q for --%s: %s", bad.GetValue(), bad.GetFlag().Name, notNumber(n, bad.GetFlag()))
		}
	}
	return usagef(hint, "%s", line)
}

// notNumber says why the value of a flag is not a valid number.
func notNumber(err *strconv.NumError, f *pflag.Flag) string {
	kind := f.Value.Type()
	switch {
	case errors.Is(err, strconv.ErrRange):
		return "out of range"
	case kind == "bool":
		return "not true or false"
	case strings.HasPrefix(kind, "float"):
		return "not a number"
	case strings.HasPrefix(kind, "uint"):
		return "not a whole number from 0 on"
	}
	return "not a whole number"
}

// flagAliases is an annotation of a flag: other names by which people may look for it.
const flagAliases = "also called"

// meantFlag returns the flag that an unknown name probably means; "": none.
func meantFlag(flags *pflag.FlagSet, name string) (meant string) {
	if f := flags.Lookup(strings.ReplaceAll(name, "_", "-")); f != nil { // as the HTTP API spells it
		return f.Name
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(f.Annotations[flagAliases], name) {
			meant = f.Name
		}
	})
	return meant
}

// exactly requires the named arguments, as in exactly("QUEUE", "BODY").
func exactly(names ...string) cobra.PositionalArgs {
	return atMost(len(names), names...)
}

// atLeast requires the named arguments and takes any number of others.
func atLeast(names ...string) cobra.PositionalArgs { return atMost(math.MaxInt, names...) }

// atMost requires the named arguments and takes others, up to so many in all.
func atMost(most int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch n := len(args); {
		case n < len(names):
			return usagef("usage: "+cmd.UseLine(), "%s is missing", names[n])
		case n > most:
			return usagef("usage: "+cmd.UseLine()+"; quote what holds spaces", "too many arguments for %s", cmd.CommandPath())
		}
		return nil
	}
}

// env returns a variable of the environment, and whether it is set and not empty.
func (p *Program) env(name string) (string, bool) {
	for i := len(p.Env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(p.Env[i], "="); ok && k == name {
			return v, v != ""
		}
	}
	return "", false
}

// isTerminal reports whether a file is a terminal.
func isTerminal(f interface{ Fd() uintptr }) bool { return isatty.IsTerminal(f.Fd()) }

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
