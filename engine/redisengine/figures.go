package redisengine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/figure"
)

// measured is what an engine counts of its calls.
type measured struct {
	trips    figure.Times // each to the nodes concerned
	scripts  figure.Times // with all tries
	failures atomic.Int64
	again    [retryCauses]atomic.Int64
	heard    atomic.Int64 // subscriptions that stood
	downs    atomic.Int64 // how often a shard was found to be down or dark
	up       atomic.Int64 // how often by when none was
}

// retryCause is why a script is run again.
type retryCause int

const (
	retryUnknown retryCause = iota // the node did not know it
	retryClock                     // by the server's clock it came too late
	retryRefused                   // the node had turned it away, or it had not got there
	retryLost                      // its answer had not come
	retryCauses
)

// retries counts scripts by why they are run again.
type retries [retryCauses]int64

func (m *measured) repeated(n retries) {
	for cause := range n {
		if n[cause] > 0 {
			m.again[cause].Add(n[cause])
		}
	}
}

// trip sends commands to the node, or the nodes, that they are for.
func (e *Engine) trip(ctx context.Context, client interface {
	DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult
}, cmds ...rueidis.Completed) []rueidis.RedisResult {
	defer e.measured.trips.Since(time.Now())
	return client.DoMulti(ctx, cmds...)
}

var _ engine.Measurer = (*Engine)(nil)

// Figures implements engine.Measurer.
func (e *Engine) Figures() []engine.Figure {
	l, m := figure.Of("redis"), &e.measured
	l.Times("round_trip_seconds", "How long answers of the servers took.", &m.trips)
	l.Times("script_seconds", "How long calls of scripts took as seen from here, with all tries.", &m.scripts)
	by := func(cause retryCause, name string) figure.By {
		return figure.By{Label: name, Value: float64(m.again[cause].Load())}
	}
	l.TotalBy("retries", "Scripts run again: because the server did not know them, had a clock further ahead than was known, or turned them away, or because the answer was lost.", "cause",
		by(retryUnknown, "unknown_script"), by(retryClock, "clock"), by(retryRefused, "turned_away"), by(retryLost, "answer_lost"))
	l.Total("failures", "Round trips that did not bring all answers.", float64(m.failures.Load()))
	up := !e.shaky.Load()
	l.Flag("up", "Whether the last round trip brought all answers.", up)
	if e.conns != nil {
		l.Total("dials", "Connections begun.", float64(e.conns.dials.Load()))
	}
	l.Flag("subscribed", "Whether hints of other processes are heard; a process in which nobody waits for messages does not listen.", e.hears.Load() && up)
	l.Total("subscriptions", "Times that hints were subscribed to: each but the first after an interruption.", float64(m.heard.Load()))
	l.Gauge("shards_down", "Shards of queues on nodes of a cluster that do not answer.", float64(e.shardsDown()))
	return l.All()
}

// shardsDown counts the shards that do not answer. It looks at them only if one has been
// down since none was.
func (e *Engine) shardsDown() (n int) {
	downs := e.measured.downs.Load()
	if downs == e.measured.up.Load() {
		return 0
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, q := range e.queues {
		for _, s := range q.shards {
			if s.down.Load() || s.dark.Load() {
				n++
			}
		}
	}
	if n == 0 {
		e.measured.up.Store(downs)
	}
	return n
}
