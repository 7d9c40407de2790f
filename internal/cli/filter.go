package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// filterFlags select messages of a queue.
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
	cmd.Flags().StringVar(&f.KeyPrefix, "key-prefix", "", "only messages whose key begins with this")
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
		id, err := tarry.ParseID(a)
		if err != nil {
			return nil, usagef("an id is a decimal number such as 42", "%q is not an id", a)
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
