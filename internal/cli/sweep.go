package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

// sweep is the work of a command on all messages that match a filter.
type sweep struct {
	do, done string // "drop", "dropped"
	flags    *filterFlags
	states   []tarry.State
	mild     bool // it can be undone, so only a sweep of all messages needs a question
	run      func(ctx context.Context, f tarry.Filter, progress ...func(tarry.Swept)) (tarry.Swept, error)

	filter tarry.Filter // made from the flags
	narrow bool         // some flag narrows the filter
}

// sweep counts the messages, asks, and does the work. It has no timeout, since the work may
// rightly take long, and so may a person's answer.
func (p *Program) sweep(cmd *cobra.Command, c *tarry.Client, queue string, s sweep) (n tarry.Swept, err error) {
	if s.filter, err = s.flags.of(queue, s.states...); err != nil {
		return n, err
	}
	s.narrow = s.flags.given(cmd)
	ctx, note := cmd.Context(), p.note()
	defer note.clear()
	of := "" // how many messages are hit, if known
	if !p.yes {
		if s.filter, err = boundByLastDeath(ctx, c, s.filter); err != nil {
			return n, err
		}
		hits, all, err := p.hits(ctx, c, s, note)
		if err != nil {
			return n, err
		}
		if hits == 0 {
			return n, s.flags.found(cmd.Name(), n) // nobody was asked about messages that come later
		}
		if slices.Equal(s.filter.States, onlyDead) {
			s.filter.Limit = hits // the bound of an engine without ranges of lists
		}
		of = fmt.Sprintf(" of %d", hits)
		if all || !s.mild {
			what := fmt.Sprintf("%s %s of %s", s.do, counted(hits, "message"), s.filter.Queue)
			if all {
				what += ", all there are"
			}
			note.clear()
			if err := p.confirm(ctx, what); err != nil {
				return n, err
			}
		}
	}
	n, err = s.run(ctx, s.filter, func(n tarry.Swept) {
		note.say("%d%s %s, %d skipped, %d looked at", n.Done, of, s.done, n.Skipped, n.Seen)
	})
	return n, cmp.Or(midway(ctx, err, n.Done, s.done), s.flags.found(cmd.Name(), n))
}

// sweepAndShow sweeps, and prints what was done to how many messages.
func (p *Program) sweepAndShow(cmd *cobra.Command, c *tarry.Client, queue string, s sweep) error {
	n, err := p.sweep(cmd, c, queue, s)
	if err != nil {
		return err
	}
	return p.showCount(s.done, queue, n.Done, n.Skipped)
}

// boundByLastDeath ends a filter for dead messages at the last death, so that messages that
// die while the user thinks are left alone. A limit alone would not do: they would take the
// place of those that are gone or redriven by then, as dead_max makes them.
func boundByLastDeath(ctx context.Context, c *tarry.Client, f tarry.Filter) (tarry.Filter, error) {
	if !slices.Equal(f.States, onlyDead) || !c.Capabilities().Range {
		return f, nil
	}
	last := tarry.Filter{Queue: f.Queue, States: onlyDead, From: f.From, To: f.To, Newest: true, Limit: 1}
	for m, err := range c.ListWhere(ctx, last) {
		if err != nil {
			return f, err
		}
		f.To = m.Died.Add(time.Millisecond)
	}
	return f, nil
}

// midway returns the error of a command that failed after it had changed n messages.
func midway(ctx context.Context, err error, n int64, done string) error {
	switch {
	case err == nil || n == 0:
		return err
	case interrupted(ctx, err):
		return failedf(nil, "run it again for the rest", "interrupted; %s %s before", messagesWere(n), done)
	}
	return fmt.Errorf("%w; %s %s before, run it again for the rest", err, messagesWere(n), done)
}

// hits counts the messages that a sweep would hit, and reports whether those are all.
func (p *Program) hits(ctx context.Context, c *tarry.Client, s sweep, note *note) (n int64, all bool, err error) {
	q, err := c.Queue(ctx, s.filter.Queue)
	if err != nil {
		return 0, false, err
	}
	total := int64(0)
	for _, state := range s.filter.States {
		total += map[tarry.State]int64{tarry.Scheduled: q.Scheduled, tarry.Ready: q.Ready, tarry.Dead: q.Dead}[state]
	}
	if !s.narrow {
		if n = total; s.filter.Limit > 0 {
			n = min(n, s.filter.Limit)
		}
		return n, n >= total, nil
	}
	for _, err := range c.ListWhere(ctx, s.filter) {
		if err != nil {
			return n, false, err
		}
		n++
		note.say("%d found", n)
	}
	return n, n >= total, nil
}

// showCount prints what was done to how many messages of a queue.
func (p *Program) showCount(what, queue string, n, skipped int64) error {
	object := struct {
		Queue   string `json:"queue"`
		Outcome string `json:"outcome"`
		Count   int64  `json:"count"`
		Skipped int64  `json:"skipped,omitempty"`
	}{queue, what, n, skipped}
	text := ""
	if skipped > 0 {
		text = fmt.Sprintf("; skipped %d that had changed meanwhile", skipped)
	}
	return p.show(object, "%s %s of %s%s", what, counted(n, "message"), queue, text)
}

// note is a progress line on the terminal, for slow work.
type note struct {
	p     *Program
	next  time.Time // when it may change again
	shown bool
}

const (
	noteAfter = time.Second
	noteEvery = 200 * time.Millisecond
)

func (p *Program) note() *note { return &note{p: p, next: p.Now().Add(noteAfter)} }

func (n *note) say(format string, args ...any) {
	now := n.p.Now()
	if !n.p.Terminal || now.Before(n.next) {
		return
	}
	n.next, n.shown = now.Add(noteEvery), true
	fmt.Fprintf(n.p.Stderr, "\r\x1b[K"+format, args...)
}

// clear removes the line.
func (n *note) clear() {
	if n.shown {
		fmt.Fprint(n.p.Stderr, "\r\x1b[K")
		n.shown = false
	}
}
