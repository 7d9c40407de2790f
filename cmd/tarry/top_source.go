package main

import (
	"context"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// news is what a source tells tarry top.
type news struct {
	queues []wire.LiveQueue
	whole  bool          // these are all: what was told before is over
	more   bool          // there are more than a source tells of
	skew   time.Duration // by how much the clock of what is watched is ahead of ours
	link   link
	err    error // it is of no use to go on
}

// link is how a source stands to what it watches.
type link struct {
	up    bool
	stale bool      // the store behind the server does not answer
	why   string    // it is not up
	again time.Time // when it is tried again; zero: it is being tried
}

// source tells what the queues hold, until ctx ends.
type source interface {
	run(ctx context.Context, tell func(news))
}

const (
	boardSpan  = 5 * time.Minute // is how far back rows tell what happened, as those of /v1/live do
	boardStep  = 10 * time.Second
	boardRates = 6 // steps of which rates are taken, which are over

	// maxPolled is how many queues of a store are looked at in a round; of more the first
	// by name are shown.
	maxPolled = 10_000
	// restOf is how many times as long as a round took the next one waits at least.
	restOf = 3
	// pollLimit bounds a round.
	pollLimit = 10 * time.Second
)

// poller asks again and again: it watches a store without a server.
type poller struct {
	c     *tarry.Client
	every time.Duration
	now   func() time.Time
}

func (p *poller) run(ctx context.Context, tell func(news)) {
	for ctx.Err() == nil {
		began := time.Now()
		asked, cancel := context.WithTimeout(ctx, pollLimit)
		rows, more, err := askBoard(asked, p.c, maxPolled)
		cancel()
		rest := max(p.every, restOf*time.Since(began))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			tell(news{link: link{why: err.Error(), again: p.now().Add(rest)}})
		default:
			tell(news{queues: rows, whole: true, more: more, link: link{up: true}})
		}
		pause(ctx, rest)
	}
}

// pause waits, until ctx ends at the latest.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// askBoard asks what the queues hold, at most so many, and where a server keeps that what
// happened to them; more: there are others.
func askBoard(ctx context.Context, c *tarry.Client, most int) (rows []wire.LiveQueue, more bool, err error) {
	trends, kept, err := trendsOf(ctx, c, boardSpan, boardStep)
	if err != nil {
		return nil, false, err
	}
	for after := ""; ; {
		page, next, err := c.Queues(ctx, after, min(most-len(rows), engine.MaxPage))
		if err != nil {
			return nil, false, err
		}
		for i := range page {
			var r wire.LiveQueue
			r.SetInfo(&page[i])
			if kept {
				r.Trend = new(wire.Happened)
			}
			if t := trends[r.Queue]; t != nil {
				*r.Trend = t.Happened
				r.PushedPerS, r.AckedPerS = perSecond(t.Spark.Pushed), perSecond(t.Spark.Acked)
			}
			rows = append(rows, r)
		}
		if after = next; next == "" || len(rows) >= most {
			return rows, next != "", nil
		}
	}
}

// perSecond is the rate of the last minute; the last step has not ended.
func perSecond(steps []uint64) float64 {
	n := uint64(0)
	over := steps[:max(0, len(steps)-1)]
	for _, s := range over[max(0, len(over)-boardRates):] {
		n += s
	}
	return float64(n) / (boardRates * boardStep).Seconds()
}
