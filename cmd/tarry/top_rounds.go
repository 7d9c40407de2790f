package main

import (
	"context"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/wire"
)

// round is what is printed where there is no screen. It is what --json prints.
type round struct {
	Now      wire.Time        `json:"now"`
	Server   string           `json:"server,omitempty"`
	Store    string           `json:"store,omitempty"`
	Version  string           `json:"version"`
	Engine   string           `json:"engine"`
	More     bool             `json:"more"` // there are more queues than are looked at
	Queues   []wire.LiveQueue `json:"queues"`
	Problems []problem        `json:"problems"`
}

// topRounds prints what the queues hold again and again.
func (p *Program) topRounds(ctx context.Context, c *tarry.Client, f *topFlags) error {
	o := p.printer(f.json)
	deaths := &deathWatch{c: c, late: f.late}
	for n := 0; ; {
		limit, cancel := f.limit(ctx)
		err := p.topRound(limit, c, f, o, deaths, n > 0)
		cancel()
		if n++; n == f.rounds || err != nil && (ctx.Err() == nil || f.rounds > 0) {
			return err
		}
		pause(ctx, f.interval)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// topRound prints a round; apart: others went before.
func (p *Program) topRound(ctx context.Context, c *tarry.Client, f *topFlags, o *printer, deaths *deathWatch, apart bool) error {
	where, version, engine, err := f.about(p, c)
	if err != nil {
		return err
	}
	now := p.Now()
	r := round{Now: wire.Time{Time: now.UTC()}, Version: version, Engine: engine, Queues: []wire.LiveQueue{}, Problems: []problem{}}
	most := maxPolled
	if _, ok := c.Engine().(*httpengine.Engine); ok {
		r.Server, most = where, maxBoard
	} else {
		r.Store = where
	}
	rows, more, err := askBoard(ctx, c, most)
	if err != nil {
		return err
	}
	b := f.board()
	b.take(rows, true, more, now)
	b.arrange(now)
	var dead []tarry.QueueInfo
	for _, row := range b.rows {
		if row.Dead > 0 {
			dead = append(dead, row.info())
		}
	}
	found := finder{Problems: append(deaths.look(ctx, dead, now), b.problems(f.late, now)...)}
	found.order()
	if r.More = b.more; len(found.Problems) > 0 {
		r.Problems = found.Problems
	}
	for _, row := range b.shown {
		r.Queues = append(r.Queues, row.LiveQueue)
	}
	if err := r.print(o, b, now, apart); err != nil {
		return err
	}
	return o.flush()
}

func (r *round) print(o *printer, b *queueBoard, now time.Time, apart bool) error {
	if o.json {
		return o.row(r)
	}
	if apart {
		if err := o.line(nil, ""); err != nil {
			return err
		}
	}
	name := "server " + r.Server
	if r.Store != "" {
		name = "store " + r.Store
	}
	if err := o.line(nil, "tarry %s, %s, engine %s, %s", r.Version, name, r.Engine, formatTime(now)); err != nil {
		return err
	}
	if err := printProblems(o, r.Problems); err != nil {
		return err
	}
	if err := o.line(nil, "%s: %d scheduled, %d ready, %d leased, %d dead", counted(b.Queues, "queue"), b.Scheduled, b.Ready, b.Leased, b.Dead); err != nil {
		return err
	}
	if b.more {
		if err := o.line(nil, "there are more queues than these, which are the first by name"); err != nil {
			return err
		}
	}
	o.head("QUEUE", "READY", "SCHEDULED", "LEASED", "DEAD", "LATE P50", "LATE P99", "PUSHED/S", "HANDLED/S", "NEXT DUE", "OLDEST READY", "PAUSED")
	for _, row := range b.shown {
		info := row.info()
		p50, p99, pushed, handled := "-", "-", "-", "-"
		if t := row.Trend; t != nil {
			pushed, handled = fewPerSecond(row.PushedPerS), fewPerSecond(row.AckedPerS)
			if latenessKnown(&t.Lateness) {
				p50, p99 = brief(t.Lateness.P50), brief(t.Lateness.P99)
			}
		}
		if err := o.row(nil, row.Queue, row.Ready, row.Scheduled, row.Leased, row.Dead, p50, p99, pushed, handled,
			orDash(away(info.NextDue, now)), orDash(away(info.OldestReady, now)), pausedText(&info)); err != nil {
			return err
		}
	}
	return nil
}
