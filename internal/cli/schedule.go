package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

func (p *Program) scheduleCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:        "schedule set|ls|get|rm|pause|resume|trigger|next|explain|apply",
		SuggestFor: []string{"cron"},
		Short:      "Push messages again and again: by a cron expression or at an interval",
		Long: `A schedule pushes a message at each instant of a cron expression such as "30 2 * * *", or of
an interval such as "@every 90s". tarry serve runs the schedules of its store.`,
	}, "usage: tarry schedule set NAME SPEC --queue QUEUE [BODY]; tarry schedule --help lists the others",
		p.scheduleSetCommand(), p.scheduleListCommand(), p.scheduleGetCommand(), p.scheduleNextCommand(),
		p.scheduleExplainCommand(), p.scheduleRemoveCommand(), p.scheduleApplyCommand(),
		p.onSchedule(refuseIt, "pause", "Stop a schedule until it is resumed", func(ctx context.Context, c *tarry.Client, name string) error {
			s, err := c.PauseSchedule(ctx, name)
			return p.showSchedule("paused", s, err)
		}),
		p.onSchedule(refuseIt, "resume", "Let a paused schedule go on with its next instant", func(ctx context.Context, c *tarry.Client, name string) error {
			s, err := c.ResumeSchedule(ctx, name)
			return p.showSchedule("resumed", s, err)
		}),
		p.onSchedule(refuseIt, "trigger", "Push the message of a schedule now, beside its instants", func(ctx context.Context, c *tarry.Client, name string) error {
			r, err := c.TriggerSchedule(ctx, name)
			if err != nil {
				return err
			}
			pushed := asAPI(func(b []byte) []byte { return wire.ScheduleRun.Append(b, &wire.Run{Run: r}) })
			return p.show(pushed, "triggered %s: id %s key %s", name, r.ID.String(), r.Key)
		}))
}

// onSchedule returns a client command on the schedule that its argument names.
func (p *Program) onSchedule(do whenMissing, verb, short string, f func(ctx context.Context, c *tarry.Client, name string) error) *cobra.Command {
	return p.client(do, &cobra.Command{
		Use:     verb + " NAME",
		Short:   short,
		Example: "  tarry schedule " + verb + " nightly",
		Args:    exactly("NAME"),
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		err := f(ctx, c, args[0])
		if errors.Is(err, tarry.ErrNotFound) {
			err = &tarry.Error{Op: "schedule " + verb + " " + args[0], Err: tarry.ErrNotFound, Hint: "no schedule has this name; tarry schedule ls shows them"}
		}
		return err
	})
}

func (p *Program) scheduleSetCommand() *cobra.Command {
	var (
		s                        tarry.Schedule
		message                  messageFlags
		queue, revision, catchUp string
	)
	cmd := p.client(makeIt, &cobra.Command{
		Use:   "set NAME SPEC --queue QUEUE [BODY|-]",
		Short: "Create a schedule, or replace the one with this name",
		Long: `Set stores a schedule as it is given: what is left out has its default, whatever was there
before. The same again changes nothing. Each message gets a key made of NAME and its instant.`,
		Example: `  tarry schedule set nightly "30 2 * * *" --zone Europe/Berlin --queue report '{"of":"yesterday"}'
  tarry schedule set ping "@every 90s" --queue ping --catch-up skip`,
		Args: atMost(3, "NAME", "SPEC"),
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) (err error) {
		if cmd.Flags().Changed("revision") && revision == "" {
			return usagef("tarry schedule get shows it", "--revision is empty")
		}
		s.Name, s.Spec = args[0], args[1]
		if s.CatchUp, err = tarry.ParseCatchUp(catchUp); err != nil {
			return err
		}
		var body []byte
		if len(args) > 2 {
			if body, err = p.readBody(queue, args[2], c.MaxBody()); err != nil {
				return err
			}
		}
		if s.Draft, err = message.draft(queue, body); err != nil {
			return err
		}
		p.warnReserved(queue)
		stored, err := c.SetSchedule(ctx, s, revision)
		return p.showSchedule("set", stored, err)
	})
	f := cmd.Flags()
	f.StringVar(&queue, "queue", "", "where to push to")
	zoneFlag(cmd, &s)
	f.Var(durationFlag(&s.Jitter), "jitter", "push later by a part of this, which depends on NAME alone")
	f.StringVar(&catchUp, "catch-up", "last", "which instants fire of those missed by more than a minute: last, skip or all")
	f.Var(timeFlag(&s.Start), "start", "no instant before this time")
	f.Var(timeFlag(&s.End), "end", "no instant after this time")
	f.StringVar(&revision, "revision", "", "only if this is its revision; 0: only if there is none")
	message.add(cmd)
	return cmd
}

func zoneFlag(cmd *cobra.Command, s *tarry.Schedule) {
	cmd.Flags().StringVar(&s.Zone, "zone", "UTC", "time zone of the expression, such as Europe/Berlin")
}

func (p *Program) scheduleListCommand() *cobra.Command {
	return p.client(showEmpty, &cobra.Command{
		Use:        "ls",
		SuggestFor: []string{"list"},
		Short:      "List schedules: overdue ones, then by their next run, then paused and ended ones",
		Args:       exactly(),
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, _ []string) error {
		o := p.printer()
		o.head("NAME", "SPEC", "ZONE", "QUEUE", "NEXT", "ERROR")
		for s, err := range c.AllSchedules(ctx) {
			if err != nil {
				return err
			}
			o.row(scheduleJSON(&wire.Schedule{Info: s}, wire.NoBodies), s.Name, cut(s.Spec), cmp.Or(s.Zone, "UTC"), s.Draft.Queue, p.nextText(&s), cell(s.Error))
			if err := o.page(); err != nil {
				return err
			}
		}
		return o.flush()
	})
}

func (p *Program) scheduleGetCommand() *cobra.Command {
	return p.onSchedule(showEmpty, "get", "Show a schedule, and what became of its last runs", func(ctx context.Context, c *tarry.Client, name string) error {
		s, err := c.Schedule(ctx, name)
		if err != nil {
			return err
		}
		told := wire.Schedule{Info: s}
		for _, r := range s.Runs {
			m, err := c.Get(ctx, tarry.ByKey(r.Key).Of(s.Draft.Queue))
			if err != nil && !errors.Is(err, tarry.ErrNotFound) {
				return err
			}
			told.Outcomes = append(told.Outcomes, wire.RunOf(r, &m))
		}
		o := p.printer()
		if p.json {
			o.object(scheduleJSON(&told, wire.AsJSON))
			return o.flush()
		}
		v := jsontext.Value(scheduleJSON(&told, wire.NoBodies)(nil))
		_ = v.Indent(jsontext.WithIndent("  ")) // it is JSON
		o.say("%s, next: %s", name, p.nextText(&s))
		o.text(readable(v) + "\n\n" + readable(s.Draft.Body) + "\n")
		return o.flush()
	})
}

func (p *Program) scheduleRemoveCommand() *cobra.Command {
	var revision string
	cmd := p.onSchedule(refuseIt, "rm", "Remove a schedule; messages that it has pushed stay", func(ctx context.Context, c *tarry.Client, name string) error {
		if err := c.RemoveSchedule(ctx, name, revision); err != nil {
			return err
		}
		return p.show(map[string]string{"name": name, "outcome": "removed"}, "removed %s", name)
	})
	cmd.Flags().StringVar(&revision, "revision", "", "only if this is its revision")
	return cmd
}

func (p *Program) scheduleNextCommand() *cobra.Command {
	n := 10
	cmd := p.onSchedule(showEmpty, "next", "Show when a schedule runs next, in its zone and in that of this machine", func(ctx context.Context, c *tarry.Client, name string) error {
		s, err := c.Schedule(ctx, name)
		if err != nil {
			return err
		}
		if s.State == tarry.SchedulePaused {
			fmt.Fprintln(p.Stderr, "it is paused; these are its instants if it is resumed")
		}
		return p.showTimes(&s.Schedule, n)
	})
	cmd.Flags().IntVar(&n, "n", n, "how many instants")
	return cmd
}

func (p *Program) scheduleExplainCommand() *cobra.Command {
	var s tarry.Schedule
	n := 5
	cmd := &cobra.Command{
		Use:     "explain SPEC",
		Short:   "Say what an expression means, and what clock changes do to it; asks no server",
		Example: `  tarry schedule explain "30 2 * * mon-fri" --zone Europe/Berlin`,
		Args:    exactly("SPEC"),
		RunE: func(_ *cobra.Command, args []string) error {
			s.Spec = args[0]
			return p.showTimes(&s, n)
		},
	}
	zoneFlag(cmd, &s)
	cmd.Flags().IntVar(&n, "n", n, "how many instants")
	p.jsonFlag(cmd, "print JSON")
	return cmd
}

// showTimes prints a timetable in words, and when it fires next.
func (p *Program) showTimes(s *tarry.Schedule, n int) error {
	now := p.Now()
	next, err := s.Next(now, n)
	words, unexplained := s.Explain(now)
	zone, unknown := time.LoadLocation(s.Zone)
	if err := cmp.Or(err, unexplained, unknown); err != nil {
		return err
	}
	o := p.printer()
	if p.json {
		o.object(asAPI(func(b []byte) []byte {
			return wire.ScheduleTimes.Append(b, &wire.Timetable{Next: next, Explain: words})
		}))
		return o.flush()
	}
	for _, line := range words {
		o.say("%s", line)
	}
	const layout = "Mon 2006-01-02 15:04:05.999 -07:00"
	o.head("IN "+zone.String(), "HERE", "FROM NOW")
	for _, t := range next {
		o.row(nil, t.In(zone).Format(layout), t.In(now.Location()).Format(layout), away(t, now))
	}
	if len(next) < n {
		o.say("and none after")
	}
	return o.flush()
}

// showSchedule prints the result of a change.
func (p *Program) showSchedule(done string, s tarry.ScheduleInfo, err error) error {
	if err != nil {
		return err
	}
	return p.show(scheduleJSON(&wire.Schedule{Info: s}, wire.AsJSON), "%s %s, next: %s", done, s.Name, p.nextText(&s))
}

func scheduleJSON(s *wire.Schedule, how wire.Bodies) asAPI {
	return func(b []byte) []byte { return wire.SchedulesAs[how].Append(b, s) }
}

// nextText writes when a schedule runs next, or why it does not.
func (p *Program) nextText(s *tarry.ScheduleInfo) string {
	if s.State != tarry.ScheduleActive {
		return s.State.String()
	}
	return p.dueText(s.Next)
}
