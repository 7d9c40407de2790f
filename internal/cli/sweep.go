package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
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

// filterFlags choose messages of a queue.
type filterFlags struct {
	tarry.Filter
	from, to string   // the names of the flags that bound the time
	groups   []string // of errors, for --group
}

// died adds the flags for dead messages.
func (f *filterFlags) died(p *Program, cmd *cobra.Command) {
	f.from, f.to = "since", "until"
	cmd.Flags().Var(boundFlag(&f.From, p.Now, -1), f.from, "only messages that died since then: a time, or how long ago, such as 2h")
	cmd.Flags().Var(boundFlag(&f.To, p.Now, -1), f.to, "only messages that died before then")
	f.text(cmd)
	cmd.Flags().StringArrayVar(&f.groups, "group", nil, "only messages of this group of errors, as dead groups shows it; may be repeated")
}

// due adds the flags for messages that wait.
func (f *filterFlags) due(p *Program, cmd *cobra.Command) {
	f.from, f.to = "due-after", "due-before"
	cmd.Flags().Var(boundFlag(&f.From, p.Now, 1), f.from, "only messages due then or later: a time, or a duration from now, such as 2h; -2h is two hours ago")
	cmd.Flags().Var(boundFlag(&f.To, p.Now, 1), f.to, "only messages due before then")
	f.text(cmd)
}

func (f *filterFlags) text(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Error, "error", "", "only messages whose last error contains this text")
	f.prefix(cmd)
}

func (f *filterFlags) prefix(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.KeyPrefix, "key-prefix", "", "only messages whose key begins with this")
}

// stored adds the flags for messages in any state.
func (f *filterFlags) stored(p *Program, cmd *cobra.Command) {
	f.from, f.to = "from", "to"
	cmd.Flags().Var(boundFlag(&f.From, p.Now, 0), f.from, "none before this time, such as 2030-01-02T15:04:05Z, -2h or +30m")
	cmd.Flags().Var(boundFlag(&f.To, p.Now, 0), f.to, "none at or behind this time")
	f.prefix(cmd)
}

// listing adds the flags for what to print of a list.
func (f *filterFlags) listing(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.Newest, "newest", false, "the other way round, the latest first")
	cmd.Flags().Int64Var(&f.Limit, "limit", 100, "print at most so many; 0: all")
	cmd.Flags().BoolVar(&f.Body, "body", false, "with the bodies")
}

// given reports whether any of the flags is set.
func (f *filterFlags) given(cmd *cobra.Command) bool {
	for _, name := range []string{f.from, f.to, "error", "key-prefix", "group"} {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// limit adds the flag --limit: how many messages to change.
func (f *filterFlags) limit(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&f.Limit, "limit", 0, "at most this many; 0: all")
}

// ids parses the ids of a command that takes ids or a filter.
func (f *filterFlags) ids(cmd *cobra.Command, args []string) (ids []tarry.ID, err error) {
	for _, a := range args {
		id, err := parseID(a)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if len(ids) > 0 && (f.given(cmd) || f.Limit != 0) {
		return nil, usagef("give one or the other", "ids are given, and flags that choose")
	}
	return ids, nil
}

// of completes the filter with its queue and the states of the command.
func (f *filterFlags) of(queue string, states ...tarry.State) (tarry.Filter, error) {
	f.Queue, f.States = queue, states
	if f.groups != nil {
		f.Match = f.grouped
	}
	switch {
	case f.Limit < 0:
		return f.Filter, usagef("0 is all", "--limit %d is negative", f.Limit)
	case !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To):
		return f.Filter, usagef("swap them", "there is nothing between --%s %s and --%s %s", f.from, formatTime(f.From), f.to, formatTime(f.To))
	}
	return f.Filter, nil
}

// found returns an error if messages of some groups were to be changed and none was found.
func (f *filterFlags) found(op string, n tarry.Swept) error {
	if f.groups == nil || n.Done+n.Skipped > 0 {
		return nil
	}
	return &engine.Error{Op: op, Queue: f.Queue, Err: tarry.ErrNotFound, Hint: "no such group; tarry dead groups " + f.Queue + " lists them"}
}

// grouped reports whether a message died of an error in one of the groups. White space does
// not count, since a table shows an error as one line.
func (f *filterFlags) grouped(m *tarry.Info) bool {
	of := oneCell(wire.Cause(m.LastError))
	return slices.ContainsFunc(f.groups, func(g string) bool { return oneCell(g) == of })
}
