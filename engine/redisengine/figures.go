package redisengine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/figure"
)

// measured counts the engine's calls.
type measured struct {
	trips    figure.Times // each to one or more nodes
	scripts  figure.Times // with all attempts
	failures atomic.Int64
	again    [retryCauses]atomic.Int64
	heard    atomic.Int64 // subscriptions made
}

// retryCause is why a script is run again.
type retryCause int

const (
	retryUnknown retryCause = iota // the node did not know the script
	retryClock                     // too late by the server's clock
	retryRefused                   // turned away, or not delivered
	retryLost                      // the answer was lost
	retryCauses
)

// sender is the client, or a connection of it.
type sender interface {
	DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult
}

// trip sends commands to their nodes and measures the round trip.
func (e *Engine) trip(ctx context.Context, client sender, cmds ...rueidis.Completed) []rueidis.RedisResult {
	defer e.measured.trips.Since(time.Now())
	return client.DoMulti(ctx, cmds...)
}

var _ engine.Measurer = (*Engine)(nil)

// Figures implements engine.Measurer.
func (e *Engine) Figures() []engine.Figure {
	l, m := figure.Of("redis"), &e.measured
	l.Times("round_trip_seconds", "Round-trip times to the servers.", &m.trips)
	l.Times("script_seconds", "Durations of script calls, with all attempts.", &m.scripts)
	by := func(cause retryCause, name string) figure.By {
		return figure.By{Label: name, Value: float64(m.again[cause].Load())}
	}
	l.TotalBy("retries", "Scripts run again, because the server did not know them, its clock was further ahead than known, it turned them away, or the answer was lost.", "cause",
		by(retryUnknown, "unknown_script"), by(retryClock, "clock"), by(retryRefused, "turned_away"), by(retryLost, "answer_lost"))
	l.Total("failures", "Round trips without all answers.", float64(m.failures.Load()))
	up := !e.shaky.Load()
	l.Flag("up", "Whether the last round trip returned all answers.", up)
	if e.conns != nil {
		l.Total("dials", "Connections begun.", float64(e.conns.dials.Load()))
	}
	l.Flag("subscribed", "Whether hints of other processes are received. A process without waiting workers does not subscribe.", e.hears.Load() && up)
	l.Total("subscriptions", "Subscriptions to hints: every one but the first follows an interruption.", float64(m.heard.Load()))
	l.Gauge("shards_down", "Shards of queues on nodes of a cluster that do not answer.", float64(len(e.downShards())))
	return l.All()
}
