package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// howSwept describes the calls that go through dead messages.
const howSwept = "Those that a filter chooses are changed in chunks, those that died first before the others; what dies meanwhile is left alone. " +
	"With Accept: " + linesType + " the answer is a line after each chunk, the last with done or error. When the client goes, no further chunk is begun. " +
	"When it fails midway, and the answer is not of lines, the header " + wire.CountHeader + " tells how many were changed."

var callRedrive = &call{
	id: "redriveQueue", group: groupQueue, does: "Make dead messages of a queue ready again", more: howSwept,
	request: wire.Redriving.Shape, answers: ok("How many are ready again.", wire.Redriven.Ref()), lines: true, fails: operateFails,
	example: json.RawMessage(`{"groups":["dial tcp #: timeout"],"to":"2030-03-01T12:00:00Z"}`),
}

// redrive makes dead messages ready: by id, by filter, or all.
func (s *Server) redrive(x *exchange, r *http.Request) error {
	q, err := decode(x, r, wire.Redriving)
	if err != nil {
		return err
	}
	if q.Filters() || q.DryRun || q.IDs == nil && wantsLines(r) {
		return s.sweep(x, r, &q, s.c.RedriveWhere)
	}
	n, err := s.c.Redrive(r.Context(), x.path.Queue(), q.IDs, q.Limit)
	if err != nil {
		return err
	}
	x.note("count", n.Redriven)
	return respond(x, wire.Redriven, &wire.Swept{Count: n.Redriven, Skipped: n.Skipped})
}

var callDrop = &call{
	id: "dropDead", group: groupQueue, does: "Drop dead messages of a queue for good", more: howSwept,
	request: wire.Dropping.Shape, answers: ok("How many are gone.", wire.Redriven.Ref()), lines: true, fails: operateFails,
	example: json.RawMessage(`{"error":"no such order","dry_run":true}`),
}

// drop removes the dead messages that a filter chooses.
func (s *Server) drop(x *exchange, r *http.Request) error {
	q, err := decode(x, r, wire.Dropping)
	if err != nil {
		return err
	}
	return s.sweep(x, r, &q, s.c.DropWhere)
}

// wantsLines reports whether the client takes an answer of lines.
func wantsLines(r *http.Request) bool {
	for _, value := range r.Header["Accept"] {
		for one := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(one, ";")
			if strings.EqualFold(strings.TrimSpace(name), linesType) {
				return true
			}
		}
	}
	return false
}

// filter returns the filter of a request for dead messages of a queue.
func filter(queue string, q *wire.Sweep) tarry.Filter {
	f := tarry.Filter{Queue: queue, States: []tarry.State{tarry.Dead}, From: q.From, To: q.To, Limit: int64(q.Limit)}
	if q.Groups != nil || q.Error != "" || q.KeyPrefix != "" {
		f.Match = func(m *tarry.Info) bool {
			return strings.Contains(m.LastError, q.Error) && strings.HasPrefix(m.Key, q.KeyPrefix) &&
				(q.Groups == nil || slices.Contains(q.Groups, wire.Cause(m.LastError)))
		}
	}
	return f
}

// noted is a filter as the audit log shows it.
type noted struct {
	Groups    []string   `json:"groups,omitempty"` // the first ones
	More      int        `json:"more_groups,omitempty"`
	Error     string     `json:"error,omitempty"`
	KeyPrefix string     `json:"key_prefix,omitempty"`
	From      *wire.Time `json:"from,omitempty"`
	To        *wire.Time `json:"to,omitempty"`
	Limit     int        `json:"limit,omitempty"`
}

// noteFilter notes the filter of a request for its line in the audit log.
func (x *exchange) noteFilter(q *wire.Sweep) {
	n := noted{Groups: q.Groups[:min(len(q.Groups), mostNoted)], Error: q.Error, KeyPrefix: q.KeyPrefix, Limit: q.Limit}
	n.More = len(q.Groups) - len(n.Groups)
	if !q.From.IsZero() {
		n.From = &wire.Time{Time: q.From}
	}
	if !q.To.IsZero() {
		n.To = &wire.Time{Time: q.To}
	}
	x.note("filter", n)
	if q.DryRun {
		x.note("dry_run", true)
	}
}

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
