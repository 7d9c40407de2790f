package redisengine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
	"github.com/tarryhq/tarry/internal/calls"
)

// A lease that its holder's push has ended is not held any more.
func TestReplacedLeasesAreNotHeld(t *testing.T) {
	t.Parallel()
	e := openStore(t, redistest.Start(t).URL())
	push(t, e, plain("q", "k"))
	l := lease1(t, e, "q")
	if _, held := e.held.Get(l.Token); !held {
		t.Error("what was leased is not held")
	}
	m := plain("q", "k")
	m.OnConflict, m.Token = engine.Replace, l.Token
	push(t, e, m)
	if _, held := e.held.Get(l.Token); held {
		t.Error("what was replaced is held")
	}
}

// delayed is a client that holds one call back.
type delayed struct {
	rueidis.Client
	hold           atomic.Bool // the next
	asked, proceed chan struct{}
}

func (d *delayed) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	if d.hold.CompareAndSwap(true, false) {
		d.asked <- struct{}{}
		<-d.proceed
	}
	return d.Client.DoMulti(ctx, cmds...)
}

// delaying returns an engine on such a client.
func delaying(t *testing.T) (*Engine, *delayed) {
	t.Helper()
	client := &delayed{Client: redistest.Start(t).Client(), asked: make(chan struct{}), proceed: make(chan struct{})}
	e, err := New(t.Context(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.slack = longWait
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, client
}

// The server leases for a caller who has left: the message is released at once, not at the
// deadline of the lease.
func TestLeasesForACallerWhoLeft(t *testing.T) {
	t.Parallel()
	e, client := delaying(t)
	push(t, e, plain("q", "k"))
	client.hold.Store(true)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := calls.Wrap(e, false, nil).Lease(ctx, []engine.Want{{Queue: "q", Max: 1}})
		left <- err
	}()
	<-client.asked
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	client.hold.Store(true)
	client.proceed <- struct{}{}
	select {
	case <-client.asked: // to release what was leased
		client.proceed <- struct{}{}
	case <-time.After(longWait):
		t.Fatal("nothing was leased and released")
	}
	eventually(t, "the message to be ready", func() bool {
		i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "k"})
		return err == nil && i.State == engine.Ready
	})
}
