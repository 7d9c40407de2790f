package rabbitengine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// measures has each figure move: by what is pushed, leased and acknowledged, by a queue that
// takes no more, by a connection that is cut and one that cannot be made.
func measures(t *testing.T, s *rabbittest.Server) {
	vhost := s.Vhost()
	p := rabbittest.StartProxy(t, vhost)
	e := opened(t, p.URL(), Config{Unit: unit, Queues: Classic})
	figure := func(name, label string) float64 {
		t.Helper()
		return enginetest.FigureOf(t, e, "rabbit_"+name, label)
	}
	reads := func(name, label string, is func(float64) bool) {
		t.Helper()
		servertest.Await(t, name+" of "+label, func() error {
			if v := figure(name, label); !is(v) {
				return errors.New("it is not there yet")
			}
			return nil
		})
	}
	of := func(want float64) func(float64) bool { return func(v float64) bool { return v == want } }
	some := func(v float64) bool { return v > 0 }

	for range 10 {
		pushed(t, e, engine.Message{})
	}
	reads("confirm_seconds", "", of(10))
	reads("channels", "publish", some)
	reads("up", "", of(1))
	reads("connects", "", of(1))
	held := leased(t, e, 1, time.Hour)
	reads("unacked", "leased", of(float64(len(held))))
	reads("channels", "consume", of(1))
	reads("deliveries", "", some)
	settled(t, e, engine.Settlement{Token: held[0].Token, Do: engine.Ack})
	reads("acks", "", some)
	_, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1000}})
	ok(t, err)
	reads("channels", "get", of(1))

	s.Policy(vhost, "", `{"max-length":1,"overflow":"reject-publish"}`, 0)
	servertest.Await(t, "the broker to refuse", func() error {
		r, err := e.Push(patience(t), []engine.Message{{Queue: "other"}})
		if ok(t, err); r[0].Err == nil {
			return errors.New("it takes it")
		}
		return nil
	})
	if n := figure("unconfirmed", "refused"); n == 0 {
		t.Error("no figure tells of what the broker has refused")
	}

	p.DropReplies(true)
	reads("unconfirmed", "unanswered", func(v float64) bool { // of a push that was sent before its time was over
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, _ = e.Push(ctx, []engine.Message{{Queue: "q"}})
		return v > 0
	})
	p.Refuse(true)
	p.Cut()
	reads("connect_failures", "", some)
	reads("up", "", of(0))
	reads("unacked", "leased", of(0))
	reads("channels", "consume", of(0))
	p.Refuse(false)
	reads("connects", "", func(v float64) bool { return v >= 2 })
	reads("up", "", of(1))
}
