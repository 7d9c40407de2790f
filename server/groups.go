package server

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// The bounds of a look at what messages died of.
const (
	maxGrouped = 10_000 // dead messages, the latest
	maxGroups  = 200
)

var callDeadGroups = &call{
	id: "groupDead", group: groupQueue, does: "Tell what messages of a queue died of",
	more:    "It looks at the 10,000 that died last. Words with digits in them count as the same.",
	answers: ok("The errors, the most frequent first.", wire.DeadGroupsAnswer.Ref()), fails: []error{engine.ErrUnsupported},
}

// deadGroups groups dead messages by what they died of.
func (s *Server) deadGroups(x *exchange, r *http.Request) error {
	if _, err := wire.Query(r.URL.RawQuery, wire.NoParameters); err != nil {
		return err
	}
	q := engine.ListQuery{Queue: x.path.Queue(), State: engine.Dead, Newest: s.c.Capabilities().Range, Limit: engine.MaxPage}
	told := wire.DeadGroups{Groups: []wire.DeadGroup{}}
	at := make(map[string]int)
	for {
		page, err := s.c.ListPage(r.Context(), q)
		if err != nil {
			return err
		}
		for i := range page.Messages {
			m := &page.Messages[i]
			text := folded(m.LastError)
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
	for _, g := range told.Groups[min(len(told.Groups), maxGroups):] {
		told.Others += g.Count
	}
	told.Groups = told.Groups[:min(len(told.Groups), maxGroups)]
	return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, &told) })
}

var (
	uuids  = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)
	words  = regexp.MustCompile(`[0-9A-Za-z]*[0-9][0-9A-Za-z]*`)
	joined = regexp.MustCompile(`#([-.:/_+]+#)+`)
)

// maxFolded is how long an error may be that is folded; the rest is cut.
const maxFolded = 300

// folded is an error with # for all that differs from one time that it happens to the next:
// words with digits in them, as numbers, ids, addresses and times have, and what joins them.
func folded(text string) string {
	if len(text) > maxFolded {
		text = strings.ToValidUTF8(text[:maxFolded], "")
	}
	text = uuids.ReplaceAllLiteralString(text, "#")
	text = words.ReplaceAllLiteralString(text, "#")
	return joined.ReplaceAllLiteralString(text, "#")
}
