package main

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/httpengine"
)

// topFlags are the flags of tarry top beyond those of all client commands.
type topFlags struct {
	target
	late, interval time.Duration
	rounds         int
	sort, filter   string
	reverse        bool

	by *column
}

const (
	defaultInterval = time.Second
	minInterval     = 100 * time.Millisecond
)

func (p *Program) topCommand() *cobra.Command {
	f := topFlags{late: tardy, interval: defaultInterval}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the queues in the terminal: what is due, what is late, what comes",
		Long: `Top shows the queues as they change, with what is wrong on top: how many messages they
hold, how late messages were in the last 5 minutes (half of them at most, 99 of 100), how
many were pushed and handled a second, what is due next. Enter opens a queue: what falls due
when, and how late messages were. ? shows the keys; q quits.

A server tells of changes by itself; when it goes away top says so and comes back to it. A
--store is asked each --interval, for 10000 queues at most, and of it is not known how late
messages were.

Where there is no terminal, with --n and with --json, it prints a table or an object each
--interval, --n times (default once), and ends.`,
		Example: "  tarry top\n  tarry top --sort p99 --filter order\n  tarry top --store disk:tarry-data\n  tarry top --json --n 0 --interval 10s",
		Args:    exactly(),
	}
	cmd.Flags().Var((*durationValue)(&f.late), "late", "messages that are ready for longer are late")
	cmd.Flags().Var((*durationValue)(&f.interval), "interval", "time between two rounds, at least 100ms")
	cmd.Flags().IntVar(&f.rounds, "n", 1, "print so many rounds instead of showing a screen; 0: until interrupted")
	cmd.Flags().StringVar(&f.sort, "sort", "name", "order by "+columnNames())
	cmd.Flags().BoolVar(&f.reverse, "reverse", false, "turn the order round")
	cmd.Flags().StringVar(&f.filter, "filter", "", "only queues with this in their names, in any case")
	f.clientFlags(cmd)
	cmd.RunE = run(func(cmd *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		in, out := p.screen()
		bare := out == nil || f.json || cmd.Flags().Changed("n")
		if !bare { // the engines' log would be written across the screen
			defer slog.SetDefault(slog.Default())
			slog.SetDefault(slog.New(slog.DiscardHandler))
		}
		c, err := p.openToLook(cmd.Context(), &f.target)
		if err != nil {
			return err
		}
		defer c.Close()
		if !c.Capabilities().Count {
			return &failedError{line: "the engine cannot tell what its queues hold", hint: "its broker can; tarry status tells whether it is ready"}
		}
		if bare {
			return p.topRounds(cmd.Context(), c, &f)
		}
		return p.topScreen(cmd.Context(), c, &f, in, out)
	})
	return cmd
}

func (f *topFlags) check() error {
	f.by = columnNamed(f.sort)
	switch {
	case f.by == nil:
		return usagef("known are "+columnNames(), "--sort %q is unknown", f.sort)
	case f.interval < minInterval:
		return usagef("leave it out for "+tarry.FormatDuration(defaultInterval), "--interval %s is less than %s", tarry.FormatDuration(f.interval), tarry.FormatDuration(minInterval))
	case f.rounds < 0:
		return usagef("0 goes on until interrupted", "--n %d is negative", f.rounds)
	case len(f.filter) > maxFilter:
		return usagef("a part of a queue's name will do", "--filter has %d bytes; at most %d are allowed", len(f.filter), maxFilter)
	}
	return nil
}

// board is an empty one with the order and the filter of the flags.
func (f *topFlags) board() *queueBoard {
	b := newQueueBoard(f.by)
	b.reverse, b.filter = f.reverse, f.filter
	return b
}

// screen is the terminal on which a screen can be drawn and from which keys can be read;
// nil: there is none.
func (p *Program) screen() (in, out *os.File) {
	in, _ = p.Stdin.(*os.File)
	out, _ = p.Stdout.(*os.File)
	if term, _ := p.env("TERM"); in == nil || out == nil || term == "dumb" || !isTerminal(in) || !isTerminal(out) {
		return nil, nil
	}
	return in, out
}

// ascii reports whether the environment does not say that UTF-8 can be shown.
func (p *Program) ascii() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, ok := p.env(name); ok {
			v = strings.ToLower(v)
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return true
}

// about is what is watched.
func (f *topFlags) about(p *Program, c *tarry.Client) (where, version, engine string, err error) {
	where, err = f.url(&p.settings)
	version = readBuild().Version
	if e, ok := c.Engine().(*httpengine.Engine); ok {
		version = e.Version()
	}
	return bare(where), version, c.Capabilities().Name, err
}

const (
	// deathsEvery is how often is asked for what died, and whether all is well.
	deathsEvery = 5 * time.Second
	// deathsMost is how many queues with dead messages are asked at a time.
	deathsMost = 32
)

// deathWatch finds what the rows do not show: whether the store is ready, and what died of
// late. Of many queues it asks a few at a time: those whose dead have changed, then those it
// has not asked for longest.
type deathWatch struct {
	c    *tarry.Client
	late time.Duration
	seen map[string]deathsSeen
}

// deathsSeen is what was found of a queue.
type deathsSeen struct {
	dead     int64
	at       time.Time
	problems []problem
}

// look asks, and returns all that it knows. What cannot be asked for is left as it was.
func (w *deathWatch) look(ctx context.Context, queues []tarry.QueueInfo, now time.Time) []problem {
	f := finder{late: w.late, now: now}
	_, _ = f.readiness(ctx, w.c) // what comes of it is a problem, or the connection's
	f.store(w.c)
	caps := w.c.Capabilities()
	before := w.seen
	w.seen = make(map[string]deathsSeen, len(queues))
	for _, q := range queues {
		if was, ok := before[q.Queue]; ok {
			w.seen[q.Queue] = was
		}
	}
	slices.SortStableFunc(queues, func(x, y tarry.QueueInfo) int {
		a, b := w.seen[x.Queue], w.seen[y.Queue]
		if changed := a.dead != x.Dead; changed != (b.dead != y.Dead) {
			if changed {
				return -1
			}
			return 1
		}
		return a.at.Compare(b.at)
	})
	for _, q := range queues[:min(len(queues), deathsMost)] {
		one := finder{now: now}
		if err := one.deaths(ctx, w.c, &caps, q); err != nil {
			break
		}
		w.seen[q.Queue] = deathsSeen{q.Dead, now, one.Problems}
	}
	for _, s := range w.seen {
		f.Problems = append(f.Problems, s.problems...)
	}
	f.order()
	return f.Problems
}
