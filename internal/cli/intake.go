package cli

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/intake"
)

func (p *Program) intakeCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "intake ls|test|add|rm",
		Short: "Show, test and change the intakes by which serve takes messages",
		Long: `An intake takes messages with a delay from another system, such as a queue of RabbitMQ, and
pushes them to a queue. Intakes are in the --config file of serve:

  {"intakes": [{"queue": "orders", "source_file": "/etc/tarry/source", "target_file": "/etc/tarry/target"}]}

The source is a URL, and with a password it is best in a file of its own, source_file. With
a target, a URL too, serve forwards what is due there, as by a route.

These commands read and change that file and ask no server. Send serve SIGHUP to read it again.`,
	}, "usage: tarry intake ls|test|add|rm --config FILE", p.intakeListCommand(), p.intakeTestCommand(), p.intakeAddCommand(), p.intakeRemoveCommand())
}

// shownIntake returns an intake as the file would have it with its defaults, without secrets.
func shownIntake(i *intake.Intake, s *intakeSettings) intakeSettings {
	remember, timeout := jsonDuration(max(0, i.Remember)), jsonDuration(i.Options.Timeout)
	shown := intakeSettings{
		title: title{i.Name, i.Queue}, Source: shownTarget(i.Source, s.SourceFile != ""),
		OnConflict: i.OnConflict, Remember: &remember, Timeout: &timeout,
	}
	if i.Target != "" {
		shown.Target = shownTarget(i.Target, s.TargetFile != "")
	}
	return shown
}

func (p *Program) intakeListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "Show and check the intakes of a --config file",
		Long: `Ls shows the intakes with the defaults filled in. Passwords, and the contents of a
source_file and a target_file, are not shown.`,
		Example: "  tarry intake ls --config tarry.json",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			intakes, settings, err := readGiven[intake.Intakes, intakeSettings](p, &intakesSection)
			if err != nil {
				return err
			}
			o := p.printer()
			o.head("NAME", "QUEUE", "SOURCE", "TARGET", "ON CONFLICT", "REMEMBER", "TIMEOUT")
			for n := range intakes {
				s := shownIntake(&intakes[n], &settings[n])
				o.row(s, s.Name, s.Queue, s.Source, orDash(s.Target), s.OnConflict, s.Remember.String(), s.Timeout.String())
			}
			return o.flush()
		},
	}
	p.jsonFlag(cmd, "print JSON, one object a line")
	return cmd
}

// onIntake makes cmd a command on the intake that its argument names.
func (p *Program) onIntake(cmd *cobra.Command, do func(ctx context.Context, i *intake.Intake, s *intakeSettings) error) *cobra.Command {
	cmd.Args = exactly("NAME")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		intakes, settings, err := readGiven[intake.Intakes, intakeSettings](p, &intakesSection)
		if err != nil {
			return err
		}
		n := slices.IndexFunc(intakes, func(i intake.Intake) bool { return i.Name == args[0] })
		if n < 0 {
			return &tarry.Error{Op: "intake " + cmd.Name() + " " + args[0], Err: tarry.ErrNotFound, Hint: "no intake has this name; tarry intake ls shows them"}
		}
		return do(cmd.Context(), &intakes[n], &settings[n])
	}
	p.jsonFlag(cmd, "print JSON")
	return cmd
}

func (p *Program) intakeTestCommand() *cobra.Command {
	return p.onIntake(&cobra.Command{
		Use:   "test NAME",
		Short: "Connect to the source of an intake, and say what it found",
		Long: `Test connects to the source of an intake from this machine, declares there what the source's
URL allows it to, and says what it found. It takes no message, and uses no store or server.`,
		Example: "  tarry intake test orders --config tarry.json",
	}, func(ctx context.Context, i *intake.Intake, s *intakeSettings) error {
		source, err := intake.Open(i.Source, i.Options)
		if err != nil {
			return err
		}
		shown, began := shownTarget(i.Source, s.SourceFile != ""), time.Now()
		conn, found, err := source.Connect(ctx)
		took := tarry.FormatDuration(time.Since(began).Round(time.Millisecond))
		answer := map[string]any{"intake": i.Name, "queue": i.Queue, "source": shown, "outcome": "found", "found": found, "took": took}
		if err == nil {
			conn.Close()
			return p.show(answer, "%s: %s (%s)", shown, found, took)
		}
		hint := ""
		if t, ok := errors.AsType[*intake.Trouble](err); ok {
			err, hint = t.Err, t.Hint
			answer["code"], answer["hint"] = t.Code, t.Hint
		}
		if p.json {
			answer["outcome"], answer["error"] = "failed", err.Error()
			delete(answer, "found")
			_ = p.show(answer, "")
		}
		return failedf(err, hint, "%s, after %s: %v", shown, took, err)
	})
}

func (p *Program) intakeAddCommand() *cobra.Command {
	var (
		s                 intakeSettings
		remember, timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "add QUEUE [SOURCE]",
		Short: "Add an intake to a --config file",
		Long: `Add adds an intake to the file, and leaves all else in it as it is. A source or target with
a password is given by a file that holds the URL, which others may not read. It connects to
nothing: tarry intake test does. Send serve SIGHUP to read the file again.`,
		Example: `  tarry intake add orders 'amqp://127.0.0.1:5672/?queue=delayed' --config tarry.json
  tarry intake add orders --source-file /etc/tarry/source --target-file /etc/tarry/target --config tarry.json`,
		Args: atMost(2, "QUEUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.Queue = args[0]; len(args) > 1 {
				s.Source = args[1]
			}
			for _, u := range []string{s.Source, s.Target} {
				if hasSecret(u) {
					return usagef("give password_file in the URL, or a file with the URL by --source-file or --target-file", "a password on the command line can be read by others")
				}
			}
			if cmd.Flags().Changed("remember") {
				s.Remember = (*jsonDuration)(&remember)
			}
			if cmd.Flags().Changed("source-timeout") {
				s.Timeout = (*jsonDuration)(&timeout)
			}
			entry, err := json.Marshal(&s)
			if err != nil {
				return err
			}
			return p.changeIntakes(s.of(), "added", func(all []jsontext.Value) []jsontext.Value { return append(all, entry) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Name, "name", "", "name of the intake (default: the queue)")
	f.StringVar(&s.SourceFile, "source-file", "", "file that holds the URL of the source")
	f.StringVar(&s.Target, "target", "", "URL where due messages are forwarded to (default: routes do that)")
	f.StringVar(&s.TargetFile, "target-file", "", "file that holds the URL of the target")
	f.StringVar(&s.OnConflict, "on-conflict", "", "when a key is taken: reject, keep, replace, keep_due or rearm (default: keep)")
	f.Var(durationFlag(&remember), "remember", "how long a key stays known after its message, such as 7d; 0: not at all (default: 24h)")
	f.Var(durationFlag(&timeout), "source-timeout", "bounds connecting to the source, and each answer of it (default: 10s)")
	p.jsonFlag(cmd, "print JSON")
	return cmd
}

func (p *Program) intakeRemoveCommand() *cobra.Command {
	return p.onIntake(&cobra.Command{
		Use:   "rm NAME",
		Short: "Remove an intake from a --config file",
		Long: `Rm removes an intake from the file, and leaves all else in it as it is. Its source, and
what was taken, stay as they are. Send serve SIGHUP to read the file again.`,
		Example: "  tarry intake rm orders --config tarry.json",
	}, func(_ context.Context, i *intake.Intake, _ *intakeSettings) error {
		return p.changeIntakes(i.Name, "removed", func(all []jsontext.Value) []jsontext.Value {
			return slices.DeleteFunc(all, func(entry jsontext.Value) bool {
				var t title
				return json.Unmarshal(entry, &t) == nil && t.of() == i.Name
			})
		})
	})
}

// changeIntakes changes the intakes of the --config file, if it is a good one afterwards.
func (p *Program) changeIntakes(name, done string, change func([]jsontext.Value) []jsontext.Value) error {
	file, err := p.settings.given(&intakesSection)
	if err != nil {
		return err
	}
	if err := changeConfig(file.path, &intakesSection, change); err != nil {
		return err
	}
	return p.show(map[string]string{"intake": name, "outcome": done, "config": file.path},
		"%s the intake %s, %s %s; send serve SIGHUP to read it again", done, name, map[string]string{"added": "in", "removed": "from"}[done], file.path)
}

// hasSecret reports whether a URL holds a password, or a user that may be a token.
func hasSecret(rawURL string) bool {
	u, err := url.Parse(rawURL)
	if err != nil || u.User == nil {
		return false // a URL that is none is refused
	}
	_, has := u.User.Password()
	return has || !u.Query().Has("password_file")
}
