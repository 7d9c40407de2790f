package cli

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

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
		groups, n := deadGroups{of: make(map[string]*deadGroup)}, 0
		for m, err := range c.ListWhere(cmd.Context(), f) { // may rightly take longer than the timeout
			if err != nil {
				return err
			}
			groups.add(&m)
			n++
			note.say("%d looked at, %d groups", n, len(groups.of))
		}
		note.clear()
		o := p.printer()
		o.head("COUNT", "FIRST DIED", "LAST DIED", "ERROR")
		for _, g := range groups.sorted() {
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

// deadGroups groups dead messages by error.
type deadGroups struct {
	of    map[string]*deadGroup
	other *deadGroup // nil: none
}

func (d *deadGroups) add(m *tarry.Info) {
	text := wire.Cause(m.LastError)
	g := d.of[text]
	switch {
	case g != nil:
	case len(d.of) < maxDeadGroups:
		g = &deadGroup{Queue: m.Queue, Error: text, First: wire.Time{Time: m.Died}}
		d.of[text] = g
	default:
		if d.other == nil {
			d.other = &deadGroup{Queue: m.Queue, Other: true, First: wire.Time{Time: m.Died}}
		}
		g = d.other
	}
	g.Count++
	if g.Last.Time = m.Died; !g.Other { // the list is in order of death
		g.Failures = wire.Failures(m.Failures)
	}
}

// sorted returns the groups, the most frequent first and the others last.
func (d *deadGroups) sorted() []*deadGroup {
	all := slices.SortedFunc(maps.Values(d.of), func(a, b *deadGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Error, b.Error))
	})
	if d.other != nil {
		all = append(all, d.other)
	}
	return all
}
