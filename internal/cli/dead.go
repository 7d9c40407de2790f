package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

func (p *Program) deadCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "dead ls|groups|redrive|drop",
		Short: "Manage dead messages: list, group by error, redrive, drop",
		Long:  `Dead messages have used up their attempts, or were buried by a worker.`,
	}, "usage: tarry dead ls|groups|redrive|drop QUEUE", p.deadListCommand(), p.deadGroupsCommand(), p.deadRedriveCommand(), p.deadDropCommand())
}

func (p *Program) deadListCommand() *cobra.Command {
	var filter filterFlags
	cmd := p.client(showEmpty, &cobra.Command{
		Use:   "ls QUEUE",
		Short: "List a queue's dead messages, the longest dead first",
		Example: `  tarry dead ls order.unpaid --body
  tarry dead ls order.unpaid --since 2h --newest
  tarry dead ls order.unpaid --error timeout --key-prefix eu-`,
		Args: exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		return p.list(ctx, c, cmd, &filter, args[0], tarry.Dead)
	})
	filter.died(p, cmd)
	filter.listing(cmd)
	return cmd
}

func (p *Program) deadRedriveCommand() *cobra.Command {
	var filter filterFlags
	cmd := p.client(refuseIt, &cobra.Command{
		Use:   "redrive QUEUE [ID…]",
		Short: "Make dead messages ready again, with their attempts reset to 0",
		Long: `Redrive makes dead messages ready again: those with these ids, else those that the flags
choose, else all; the longest dead first. A message whose key a live message now has is
skipped. Redriving a whole queue asks first, or needs --yes.`,
		Example: `  tarry dead redrive order.unpaid --since 2h --error timeout
  tarry dead redrive order.unpaid --group "dial tcp #: timeout"
  tarry dead redrive order.unpaid 17 18
  tarry dead redrive order.unpaid --yes`,
		Args: atLeast("QUEUE"),
	}, func(_ context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		ctx, queue := cmd.Context(), args[0] // no timeout, since a person may think for longer
		ids, err := filter.ids(cmd, args[1:])
		if err != nil {
			return err
		}
		var n tarry.Swept
		if len(ids) > 0 {
			r, err := c.Redrive(ctx, queue, ids, 0)
			if err != nil {
				return err
			}
			n = tarry.Swept{Done: r.Redriven, Skipped: r.Skipped}
		} else {
			n, err = p.sweep(cmd, c, queue, sweep{do: "redrive", done: "redriven", flags: &filter, states: onlyDead, mild: true, run: c.RedriveWhere})
			if err != nil {
				return err
			}
		}
		object := struct {
			Queue    string `json:"queue"`
			Outcome  string `json:"outcome"`
			Redriven int64  `json:"redriven"`
			Skipped  int64  `json:"skipped"`
		}{queue, "redriven", n.Done, n.Skipped}
		text := ""
		if n.Skipped > 0 {
			text = fmt.Sprintf("; skipped %d that are not dead or whose key a live message holds", n.Skipped)
		}
		return p.show(object, "redriven %s of %s%s", counted(n.Done, "message"), queue, text)
	})
	filter.died(p, cmd)
	filter.limit(cmd)
	p.yesFlag(cmd)
	return cmd
}

func (p *Program) deadDropCommand() *cobra.Command {
	var filter filterFlags
	cmd := p.client(refuseIt, &cobra.Command{
		Use:   "drop QUEUE [ID…]",
		Short: "Drop dead messages for good",
		Long: `Drop removes dead messages: those with these ids, else those that the flags choose, else
all; the longest dead first. It asks first, or needs --yes. Messages that are not dead stay.`,
		Example: `  tarry dead drop order.unpaid --until 7d
  tarry dead drop order.unpaid --error "no such order" --yes
  tarry dead drop order.unpaid 17 18 --yes`,
		Args: atLeast("QUEUE"),
	}, func(_ context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		ctx, queue := cmd.Context(), args[0] // no timeout, since a person may think for longer
		ids, err := filter.ids(cmd, args[1:])
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			if err := p.confirm(ctx, fmt.Sprintf("drop %d dead messages of %s for good", len(ids), queue)); err != nil {
				return err
			}
			for i, id := range ids {
				if err := drop(ctx, c, queue, id); err != nil && i > 0 {
					return fmt.Errorf("%w; the %d named before it were dropped", err, i)
				} else if err != nil {
					return err
				}
			}
			return p.showCount("dropped", queue, int64(len(ids)), 0)
		}
		return p.sweepAndShow(cmd, c, queue, sweep{do: "drop for good", done: "dropped", flags: &filter, states: onlyDead, run: c.DropWhere})
	})
	filter.died(p, cmd)
	filter.limit(cmd)
	p.yesFlag(cmd)
	return cmd
}

var onlyDead = []tarry.State{tarry.Dead}

// drop drops a message if it is dead.
func drop(ctx context.Context, c *tarry.Client, queue string, id tarry.ID) error {
	err := c.Cancel(ctx, tarry.Ref{Queue: queue, ID: id, IfState: tarry.Dead})
	if e := (*engine.Error)(nil); errors.Is(err, tarry.ErrStale) && errors.As(err, &e) {
		return &engine.Error{Op: "drop", Queue: queue, ID: id, Err: tarry.ErrStale, Hint: e.Hint + "; tarry cancel removes live messages"}
	}
	return err
}

// maxDeadGroups is how many errors are counted apart; all others are counted together.
const maxDeadGroups = 1000

// deadGroup is the dead messages with nearly the same error.
type deadGroup struct {
	Queue string    `json:"queue"`
	Error string    `json:"error"`
	Count int64     `json:"count"`
	First wire.Time `json:"first_died"`
	Last  wire.Time `json:"last_died"`
	Other bool      `json:"other,omitempty"` // all further groups together

	Failures []wire.Failure `json:"failures,omitempty"` // of the message that died last
}

func (p *Program) deadGroupsCommand() *cobra.Command {
	var filter filterFlags
	cmd := p.client(showEmpty, &cobra.Command{
		Use:   "groups QUEUE",
		Short: "Count a queue's dead messages by error, the most frequent first",
		Long: `Groups counts dead messages by their last error. Words with digits, such as numbers, ids
and addresses, appear as #, so that the same fault makes one group. Pass a group to dead ls,
redrive and drop with --group.`,
		Example: `  tarry dead groups order.unpaid
  tarry dead groups order.unpaid --since 2h --json`,
		Args: exactly("QUEUE"),
	}, func(_ context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		f, err := filter.of(args[0], tarry.Dead)
		if err != nil {
			return err
		}
		note := p.note()
		defer note.clear()
		groups, other, n := make(map[string]*deadGroup), &deadGroup{Queue: f.Queue, Other: true}, 0
		for m, err := range c.ListWhere(cmd.Context(), f) { // may rightly take longer than the timeout
			if err != nil {
				return err
			}
			text := wire.Cause(m.LastError)
			g := groups[text]
			if g == nil && len(groups) < maxDeadGroups {
				g = &deadGroup{Queue: f.Queue, Error: text}
				groups[text] = g
			}
			cmp.Or(g, other).add(&m)
			n++
			note.say("%d looked at, %d groups", n, len(groups))
		}
		note.clear()
		o := p.printer()
		o.head("COUNT", "FIRST DIED", "LAST DIED", "ERROR")
		for _, g := range mostFrequent(groups, other) {
			text := oneCell(g.Error)
			if g.Other {
				text = "(other errors)"
			}
			o.row(g, g.Count, away(g.First.Time, p.Now()), away(g.Last.Time, p.Now()), orDash(text))
		}
		return o.flush()
	})
	filter.died(p, cmd)
	return cmd
}

// add adds a message. They come in the order of their deaths.
func (g *deadGroup) add(m *tarry.Info) {
	if g.Count++; g.Count == 1 {
		g.First.Time = m.Died
	}
	if g.Last.Time = m.Died; !g.Other {
		g.Failures = wire.Failures(m.Failures)
	}
}

// mostFrequent returns the groups, the most frequent first, and then the others if there are any.
func mostFrequent(groups map[string]*deadGroup, other *deadGroup) []*deadGroup {
	all := slices.SortedFunc(maps.Values(groups), func(a, b *deadGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Error, b.Error))
	})
	if other.Count > 0 {
		all = append(all, other)
	}
	return all
}
