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
	"github.com/tarryhq/tarry/internal/wire"
)

// topFlags are the flags of tarry top, besides those of all client commands.
type topFlags struct {
	late, interval time.Duration
	rounds         int
	sort, filter   string
	reverse        bool

	by *column
}

const (
	defaultInterval = time.Second
	minInterval     = 100 * time.Millisecond
	maxFilter       = tarry.MaxQueueBytes // bytes of --filter
)

func (p *Program) topCommand() *cobra.Command {
	f := topFlags{late: tardy, interval: defaultInterval}
	cmd := p.client(showEmpty, &cobra.Command{
		Use:   "top",
		Short: "Watch the queues in the terminal: due, late and to come",
		Long: `Top shows the queues live, those with problems on top: their counts, how late messages were
in the last 5 minutes (p50 and p99), pushes and acks per second, and what is due next. Enter
opens a queue with its forecast and lateness. ? shows the keys; q quits.

Top follows a server, and reconnects if the connection breaks. It reads a --store every
--interval, up to 10000 queues, without lateness and rates.

Without a terminal, with --n or with --json, it prints a table or an object every --interval,
--n times (default once).`,
		Example: "  tarry top\n  tarry top --sort p99 --filter order\n  tarry top --store disk:tarry-data\n  tarry top --json --n 0 --interval 10s",
		Args:    exactly(),
	}, nil)
	cmd.Flags().Var((*durationValue)(&f.late), "late", "messages that are ready for longer are late")
	cmd.Flags().Var((*durationValue)(&f.interval), "interval", "time between two reads, at least 100ms")
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

// round is the JSON of one round.
type round struct {
	Now wire.Time `json:"now"`
	watched
	More     bool             `json:"more"` // not all queues are listed
	Queues   []wire.LiveQueue `json:"queues"`
	Problems []problem        `json:"problems"`
}

// topRounds prints the queues, round by round.
func (p *Program) topRounds(ctx context.Context, c *tarry.Client, f *topFlags, w watched) error {
	for n := 1; ; n++ {
		limit, cancel := withTimeout(ctx, p.target.timeout)
		err := p.topRound(limit, c, f, w)
		cancel()
		if n == f.rounds || err != nil && (ctx.Err() == nil || f.rounds > 0) {
			return err
		}
		if pause(ctx, f.interval); ctx.Err() != nil {
			return nil
		}
		if !p.json {
			fmt.Fprintln(p.Stdout)
		}
	}
}

func (p *Program) topRound(ctx context.Context, c *tarry.Client, f *topFlags, w watched) error {
	most := maxBoard
	if w.Store != "" {
		most = maxPolled
	}
	rows, more, err := askBoard(ctx, c, most)
	if err != nil {
		return err
	}
	s := p.topScreen(ctx, c, f, w)
	found := finder{now: p.Now(), Problems: []problem{}}
	found.beyond(ctx, c)
	s.Update(beyond(found.Problems))
	s.Update(news{queues: rows, whole: true, more: more, state: live})
	o := p.printer()
	if p.json {
		r := round{wire.Time{Time: s.now.UTC()}, w, s.board.more, []wire.LiveQueue{}, s.problems}
		for _, row := range s.board.shown {
			r.Queues = append(r.Queues, row.LiveQueue)
		}
		o.object(r)
	} else {
		s.print(o)
	}
	return o.flush()
}

// print prints a round as a table.
func (s *topScreen) print(o *printer) {
	o.say("%s, %s", s.watched.String(), formatTime(s.now))
	printProblems(o, s.problems)
	o.say("%s", s.board.sums())
	if s.board.more {
		o.say("there are more queues than these, which are the first by name")
	}
	o.head("QUEUE", "READY", "SCHEDULED", "LEASED", "DEAD", "LATE P50", "LATE P99", "PUSHED/S", "HANDLED/S", "NEXT DUE", "OLDEST READY", "PAUSED")
	for _, r := range s.board.shown {
		q, late := r.info(), r.lateness()
		o.row(nil, r.Queue, r.Ready, r.Scheduled, r.Leased, r.Dead, lateBy(late.P50).text, lateBy(late.P99).text, r.rate(r.PushedPerS).text, r.rate(r.AckedPerS).text,
			orDash(away(q.NextDue, s.now)), orDash(away(q.OldestReady, s.now)), pausedText(&q))
	}
}
