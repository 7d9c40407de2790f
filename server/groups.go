package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// The bounds for grouping dead messages by error.
const (
	maxGrouped = 10_000 // how many dead messages are read, the newest first
	maxLooks   = 2      // at a time, since each may take about 30 MB and most of a second
)

var callDeadGroups = &call{
	id: "groupDead", group: groupQueue, does: "Tell what messages of a queue died of",
	more:    "It looks at the 10,000 that died last. Words with digits in them count as the same.",
	answers: ok("The errors, the most frequent first.", wire.DeadGroupsAnswer.Ref()), fails: []error{engine.ErrUnsupported},
}

// deadGroups groups dead messages by the error they died of.
func (s *Server) deadGroups(x *exchange, r *http.Request) error {
	return s.groups.answer(x, r, func(b []byte) ([]byte, error) { return s.appendGroups(r.Context(), b, x.path.Queue()) })
}

// appendGroups groups the dead messages of a queue and appends the groups to b.
func (s *Server) appendGroups(ctx context.Context, b []byte, queue string) ([]byte, error) {
	told := wire.DeadGroups{Groups: []wire.DeadGroup{}}
	at := make(map[string]int)
	all := tarry.Filter{Queue: queue, States: []tarry.State{tarry.Dead}, Newest: s.c.Capabilities().Range}
	for m, err := range s.c.ListWhere(ctx, all) {
		if err != nil {
			return nil, err
		}
		if told.More = told.Seen == maxGrouped; told.More {
			break
		}
		told.Seen++
		text := wire.Cause(m.LastError)
		n, known := at[text]
		if !known {
			n = len(told.Groups)
			at[text] = n
			told.Groups = append(told.Groups, wire.DeadGroup{Error: text, Example: m.LastError, First: wire.Time{Time: m.Died}, Last: wire.Time{Time: m.Died},
				Failures: wire.Failures(m.Failures)})
		}
		g := &told.Groups[n]
		g.Count++
		g.IDs = append(g.IDs, m.ID.String())
		if m.Died.Before(g.First.Time) {
			g.First.Time = m.Died
		}
		if m.Died.After(g.Last.Time) {
			g.Last.Time = m.Died
		}
	}
	slices.SortStableFunc(told.Groups, func(a, b wire.DeadGroup) int { return cmp.Compare(b.Count, a.Count) })
	for _, g := range told.Groups[min(len(told.Groups), wire.MaxGroups):] {
		told.Others += g.Count
	}
	told.Groups = told.Groups[:min(len(told.Groups), wire.MaxGroups)]
	return wire.AppendJSON(b, &told), nil
}
