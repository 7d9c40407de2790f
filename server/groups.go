package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"

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
	q := engine.ListQuery{Queue: queue, State: engine.Dead, Newest: s.c.Capabilities().Range, Limit: engine.MaxPage}
	told := wire.DeadGroups{Groups: []wire.DeadGroup{}}
	at := make(map[string]int)
	for {
		page, err := s.c.ListPage(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Messages {
			m := &page.Messages[i]
			text := wire.Cause(m.LastError)
			n, known := at[text]
			if !known {
				n = len(told.Groups)
				at[text] = n
				told.Groups = append(told.Groups, wire.DeadGroup{Error: text, Example: m.LastError, First: wire.Time{Time: m.Died}, Last: wire.Time{Time: m.Died}})
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
		told.Seen += len(page.Messages)
		if q.After = page.Next; q.After == "" || told.Seen >= maxGrouped {
			break
		}
	}
	told.More = q.After != ""
	slices.SortStableFunc(told.Groups, func(a, b wire.DeadGroup) int { return cmp.Compare(b.Count, a.Count) })
	for _, g := range told.Groups[min(len(told.Groups), wire.MaxGroups):] {
		told.Others += g.Count
	}
	told.Groups = told.Groups[:min(len(told.Groups), wire.MaxGroups)]
	return wire.AppendJSON(b, &told), nil
}
