package wire

import "github.com/tarryhq/tarry/engine"

// The bounds of a viewer's query.
const (
	MaxWatched  = 32  // queues that the query names
	MaxLiveRows = 500 // queues of an event
)

// Overview says what a viewer wants to see of the queues that its query does not name.
type Overview string

// The kinds of overviews.
const (
	OverviewNone    Overview = "none"
	OverviewChanges Overview = "changes" // the queues that change from now on
	OverviewAll     Overview = "all"     // first all queues, then those that change
)

// LiveQuery is what a viewer wants to see.
type LiveQuery struct {
	Queues   []string
	Overview Overview
}

// LiveParameters are the parameters of a LiveQuery.
var LiveParameters = parameters(
	parameter("queues", isText.With("examples", []string{"order.unpaid,mail"}), "names of queues to be told of within 250 ms, with commas between, 32 at most"),
	parameter("overview", isText.With("enum", []Overview{OverviewNone, OverviewChanges, OverviewAll}), "of all other queues: nothing, those that change, or first all as they are; without it nothing where queues are named, else changes"))

// ParseLiveQuery reads a LiveQuery.
func ParseLiveQuery(raw string) (l LiveQuery, err error) {
	q := parseQuery(raw, LiveParameters)
	l.Queues, l.Overview = q.queues(MaxWatched), Overview(q.Get("overview"))
	switch l.Overview {
	case OverviewNone, OverviewChanges, OverviewAll:
	case "":
		if l.Overview = OverviewChanges; len(l.Queues) > 0 {
			l.Overview = OverviewNone
		}
	default:
		q.fail(Wrong("overview: must be none, changes or all, not %s", engine.Clip(string(l.Overview))))
	}
	if l.Overview == OverviewNone && len(l.Queues) == 0 {
		q.fail(Wrong("overview: is none, and no queues are named: there is nothing to tell"))
	}
	return l, q.err
}

// LiveQueue is what a queue holds, and what happened in it lately.
type LiveQueue struct {
	Queue       string    `json:"queue"`
	Scheduled   int64     `json:"scheduled"`
	Ready       int64     `json:"ready"`
	Leased      int64     `json:"leased"`
	Dead        int64     `json:"dead"`
	Finished    int64     `json:"finished"`
	History     int64     `json:"history"`
	NextDue     Time      `json:"next_due"`
	OldestReady Time      `json:"oldest_ready"`
	Paused      bool      `json:"paused"`
	PausedUntil *Time     `json:"paused_until,omitempty"`
	Gone        bool      `json:"gone,omitempty"` // it holds nothing any more, is not paused and has no settings
	Changes     uint64    `json:"changes"`        // a number that changes when its messages may have changed
	PushedPerS  float64   `json:"pushed_per_s"`   // of the last minute
	AckedPerS   float64   `json:"acked_per_s"`
	Trend       *Happened `json:"trend"` // of the last 5 minutes; nil: not recorded
}

// SetInfo sets what the queue holds.
func (q *LiveQueue) SetInfo(i *engine.QueueInfo) {
	q.Queue, q.Scheduled, q.Ready, q.Leased, q.Dead, q.Finished, q.History = i.Queue, i.Scheduled, i.Ready, i.Leased, i.Dead, i.Finished, i.History
	q.NextDue, q.OldestReady, q.Paused, q.PausedUntil = Time{Time: i.NextDue}, Time{Time: i.OldestReady}, i.Paused, nil
	if !i.PausedUntil.IsZero() {
		q.PausedUntil = &Time{Time: i.PausedUntil}
	}
}

// LiveTotals are what all queues hold together.
type LiveTotals struct {
	Queues    int   `json:"queues"`
	Scheduled int64 `json:"scheduled"`
	Ready     int64 `json:"ready"`
	Leased    int64 `json:"leased"`
	Dead      int64 `json:"dead"`
}
