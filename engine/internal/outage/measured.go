package outage

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// undone returns the engine's count of transactions that were undone for a cause.
func undone(t testing.TB, c *tarry.Client, cause string) float64 {
	t.Helper()
	return enginetest.FigureOf(t, c.Engine(), c.Capabilities().Name+"_undone", cause)
}

// Session is another session of the database, in a transaction that outweighs an engine's: in
// a deadlock, the database undoes the engine's.
type Session struct {
	Lock func(id engine.ID) error // a message
	Free func(id engine.ID) bool  // reports whether nothing has locked a message
	End  func()
}

// Measured makes calls wait for a connection of the pool, and deadlock with another session.
// The calls must succeed, and figures must count these events, even after the engine is
// closed.
func Measured(t *testing.T, url string, begin func() Session) {
	c := Open(t, With(t, url, "pool", "2"))
	e, name := c.Engine(), c.Capabilities().Name+"_"
	figure := func(of, label string) float64 {
		t.Helper()
		return enginetest.FigureOf(t, e, name+of, label)
	}
	grows := func(of, label string, during func()) {
		t.Helper()
		was := figure(of, label)
		during()
		if is := figure(of, label); is <= was {
			t.Errorf("%s of %q was %v and is %v", of, label, was, is)
		}
	}
	push := func(keys ...string) (ids []engine.ID) {
		t.Helper()
		var msgs []engine.Message
		for _, key := range keys {
			msgs = append(msgs, engine.Message{Queue: queue, Key: key, Due: engine.When{In: time.Hour}})
		}
		for _, r := range enginetest.MustPush(t, e, msgs...) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	for _, times := range []string{"transaction_seconds", "round_trip_seconds", "pool_wait_seconds"} {
		grows(times, "", func() { push("") })
	}
	if limit := figure("connections_limit", ""); limit != 2 {
		t.Errorf("of 2 connections the limit is %v", limit)
	}
	grows("pool_waits", "", func() {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { push("", "", "") })
		}
		all.Wait()
	})

	was := undone(t, c, "deadlock")
	for round := 0; undone(t, c, "deadlock") == was; round++ { // a deadlock may be found before both wait
		if round == 20 {
			t.Fatal("no figure tells of deadlocks")
		}
		deadlock(t, e, push(fmt.Sprint("a", round), fmt.Sprint("b", round)), begin())
	}
	check(t, c.Close())
	if in := figure("connections", "in_use"); in != 0 || undone(t, c, "deadlock") == was {
		t.Errorf("once closed %v connections are in use, and %v deadlocks", in, undone(t, c, "deadlock"))
	}
}

// deadlock makes the engine cancel two messages while another session locks them in reverse
// order.
func deadlock(t *testing.T, e engine.Engine, ids []engine.ID, other Session) {
	t.Helper()
	ended := make(chan error, 1)
	func() {
		defer other.End()
		check(t, other.Lock(ids[1]))
		go func() {
			errs, err := e.Cancel(context.WithoutCancel(t.Context()), []engine.Ref{{Queue: queue, ID: ids[0]}, {Queue: queue, ID: ids[1]}})
			for i := range errs {
				if err == nil {
					err = errs[i]
				}
			}
			ended <- err
		}()
		servertest.Await(t, "the first to be locked", func() error {
			if other.Free(ids[0]) {
				return fmt.Errorf("it is free")
			}
			return nil
		})
		_ = other.Lock(ids[0]) // an error means that this session was undone instead
	}()
	check(t, <-ended)
}
