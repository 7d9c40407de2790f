package redisengine

import (
	"context"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// grown returns a function that waits until a figure is greater than it is now.
func grown(t *testing.T, e *Engine, name, label string) func() {
	t.Helper()
	was := enginetest.FigureOf(t, e, name, label)
	return func() {
		t.Helper()
		eventually(t, name+" of "+label+" to grow", func() bool { return enginetest.FigureOf(t, e, name, label) > was })
	}
}

// Each figure moves with its cause: calls, a server that has forgotten the scripts, a
// connection that is cut, a server that is gone.
func TestFigures(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr())
	e := openPatient(t, p.URL(), "shards=1")
	reads := func(name string, want float64) {
		t.Helper()
		eventually(t, name, func() bool { return enginetest.FigureOf(t, e, name, "") == want })
	}
	trips, scripts := grown(t, e, "redis_round_trip_seconds", ""), grown(t, e, "redis_script_seconds", "")
	push(t, e, plain("q", "a"))
	trips()
	scripts()
	unknown := grown(t, e, "redis_retries", "unknown_script")
	s.Do("SCRIPT", "FLUSH")
	push(t, e, plain("q", "b"))
	unknown()
	reads("redis_subscribed", 0)
	reads("redis_up", 1)
	defer e.Watch(func(string) {})()
	reads("redis_subscribed", 1)

	dials, heard, lost := grown(t, e, "redis_dials", ""), grown(t, e, "redis_subscriptions", ""), grown(t, e, "redis_retries", "answer_lost")
	e.note(t.Context(), e.queue("q")) // again, after the subscription
	p.DropReplies(true)
	pushed := make(chan error, 1)
	go func() {
		_, err := e.Push(t.Context(), []engine.Message{plain("q", "c")})
		pushed <- err
	}()
	eventually(t, "the push to arrive", func() bool {
		m := s.Do("HEXISTS", e.queue("q").shards[0].keys[8], "c")
		there, err := m.AsInt64()
		return err == nil && there == 1
	})
	p.Cut()
	if err := <-pushed; err != nil {
		t.Error(err)
	}
	dials()
	heard()
	lost()
	reads("redis_subscribed", 1)

	failures, away := grown(t, e, "redis_failures", ""), grown(t, e, "redis_retries", "turned_away")
	p.Refuse(true)
	p.Cut()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		_, err := e.Push(ctx, []engine.Message{plain("q", "d")})
		pushed <- err
	}()
	failures()
	away()
	leave()
	<-pushed
	reads("redis_up", 0)
	reads("redis_subscribed", 0)
}
