package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server"
)

// topFlags are the flags of tarry top, besides those of all client commands.
type topFlags struct {
	late, interval time.Duration
	rounds         int
	sort           string
	order          // what the table begins with
}

const (
	defaultInterval = time.Second
	minInterval     = 100 * time.Millisecond
	maxFilter       = tarry.MaxQueueBytes // bytes of --filter

	topSpan = 5 * time.Minute // of lateness
	topStep = 10 * time.Second
	topMost = 10_000 // queues
)

func (p *Program) topCommand() *cobra.Command {
	f := topFlags{late: server.LateAfter, interval: defaultInterval}
	cmd := p.client(showEmpty, &cobra.Command{
		Use:   "top",
		Short: "Watch the queues in the terminal: due, late and to come",
		Long: `Top shows the queues live, up to 10000 of them, those with problems on top: their counts, how
late messages were in the last 5 minutes (p50 and p99), pushes and acks per second, and what
is due next. Enter opens a queue with its forecast and lateness. ? shows the keys; q quits.

It asks every --interval. Lateness and rates come from a server; a --store has none.

Without a terminal, with --n or with --json, it prints a table or an object every --interval,
--n times (default once).`,
		Example: "  tarry top\n  tarry top --sort p99 --filter order\n  tarry top --store disk:tarry-data\n  tarry top --json --n 0 --interval 10s",
		Args:    exactly(),
	}, nil)
	cmd.Flags().Var(durationFlag(&f.late), "late", "messages that are ready for longer are late")
	cmd.Flags().Var(durationFlag(&f.interval), "interval", "time between two reads, at least 100ms")
	cmd.Flags().IntVar(&f.rounds, "n", 1, "print this many times instead of showing a screen; 0: until interrupted")
	cmd.Flags().StringVar(&f.sort, "sort", "name", "order by "+columnNames())
	cmd.Flags().BoolVar(&f.reverse, "reverse", false, "reverse the order")
	cmd.Flags().StringVar(&f.filter, "filter", "", "only queues whose names contain this, ignoring case")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		in, out := p.console()
		bare := out == nil || p.json || cmd.Flags().Changed("n")
		if !bare { // the engines' log would spoil the screen
			defer slog.SetDefault(slog.Default())
			slog.SetDefault(slog.New(slog.DiscardHandler))
		}
		c, err := p.open(cmd, showEmpty)
		if err != nil {
			return err
		}
		defer c.Close()
		w, err := p.watched(c)
		if err != nil {
			return err
		}
		if !c.Capabilities().Count {
			return failedf(nil, "its broker can; tarry status tells whether it is ready", "the engine cannot tell what its queues hold")
		}
		if bare {
			return p.topRounds(cmd.Context(), c, &f, w)
		}
		return p.topOnScreen(cmd.Context(), c, &f, w, in, out)
	}
	return cmd
}

func (f *topFlags) check() error {
	by := slices.IndexFunc(boardColumns, func(c *column) bool { return c.name == f.sort })
	switch {
	case by < 0:
		return usagef("known are "+columnNames(), "--sort %q is unknown", f.sort)
	case f.interval < minInterval:
		return usagef("leave it out for "+tarry.FormatDuration(defaultInterval), "--interval %s is less than %s", tarry.FormatDuration(f.interval), tarry.FormatDuration(minInterval))
	case f.rounds < 0:
		return usagef("0 goes on until interrupted", "--n %d is negative", f.rounds)
	case len(f.filter) > maxFilter:
		return usagef("a part of a queue's name will do", "--filter has %d bytes; at most %d are allowed", len(f.filter), maxFilter)
	}
	f.by = boardColumns[by]
	return nil
}

// console returns the terminal to read keys from and to draw on; nil: none.
func (p *Program) console() (in, out *os.File) {
	in, _ = p.Stdin.(*os.File)
	out, _ = p.Stdout.(*os.File)
	if term, _ := p.env("TERM"); in == nil || out == nil || term == "dumb" || !isTerminal(in) || !isTerminal(out) {
		return nil, nil
	}
	return in, out
}

// topLook asks for the queues and their problems, within the timeout.
func (p *Program) topLook(ctx context.Context, c *tarry.Client, late time.Duration) (*overview, error) {
	ctx, cancel := withTimeout(ctx, p.target.timeout)
	defer cancel()
	o := &overview{late: late, now: p.Now()}
	if _, err := o.readiness(ctx, c); err != nil {
		return o, err
	}
	return o, o.look(ctx, c, topSpan, topStep, topMost)
}

// topRounds prints the queues, round by round.
func (p *Program) topRounds(ctx context.Context, c *tarry.Client, f *topFlags, w watched) error {
	for n := 1; ; n++ {
		err := p.topRound(ctx, c, f, w)
		if n == f.rounds || err != nil && (ctx.Err() == nil || f.rounds > 0) {
			return err
		}
		if !duration.Sleep(ctx, f.interval) {
			return nil
		}
		if !p.json {
			fmt.Fprintln(p.Stdout)
		}
	}
}

// round is the JSON of one round.
type round struct {
	Now wire.Time `json:"now"`
	watched
	More     bool             `json:"more"` // not all queues are listed
	Queues   []wire.LiveQueue `json:"queues"`
	Problems []problem        `json:"problems"`
}

func (p *Program) topRound(ctx context.Context, c *tarry.Client, f *topFlags, w watched) error {
	v, err := p.topLook(ctx, c, f.late)
	if err != nil {
		return err
	}
	rows, o := f.order.of(v.rows, v.now), p.printer()
	if !p.json {
		printTop(o, v, rows, w)
		return o.flush()
	}
	r := round{wire.Time{Time: v.now.UTC()}, w, v.more, []wire.LiveQueue{}, append([]problem{}, v.problems...)}
	for _, row := range rows {
		q := wire.LiveQueue{PushedPerS: row.pushed, AckedPerS: row.handled, Trend: row.trend}
		q.SetInfo(&row.QueueInfo)
		r.Queues = append(r.Queues, q)
	}
	o.object(r)
	return o.flush()
}

// printTop prints a round as a table.
func printTop(o *printer, v *overview, rows []*queueRow, w watched) {
	o.say("%s, %s", w.String(), formatTime(v.now))
	printProblems(o, v)
	o.say("%s", v.sums())
	if v.more {
		o.say("there are more queues than these, which are the first by name")
	}
	var cells []any
	for _, c := range boardColumns {
		cells = append(cells, c.head)
	}
	o.head(cells...)
	for _, r := range rows {
		cells = cells[:0]
		for _, c := range boardColumns {
			cells = append(cells, c.of(r, v.now).text)
		}
		o.row(nil, cells...)
	}
}
