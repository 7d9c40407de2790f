package redisengine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// cutOff is a store that is reached through a proxy, and beside it.
type cutOff struct {
	*redistest.Proxy
	server *redistest.Server
	engine *Engine // through the proxy
	client *tarry.Client
	beside *tarry.Client
}

// newCutOff starts the server, which then knows the scripts that are used first.
func newCutOff(t *testing.T, shards string) cutOff {
	t.Helper()
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr())
	e := openPatient(t, p.URL(), shards)
	c := cutOff{p, s, e, tarry.New(e, nil), openClient(t, s.URL(), shards)}
	t.Cleanup(func() { _ = c.client.Close() }) // what fails is the engine's
	push(t, e, plain("q", "first"), plain("q", "second"))
	claimed, err := e.Claim(t.Context(), engine.Ref{Queue: "q", Key: "first"}, engine.Want{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []engine.Lease{claimed, lease1(t, e, "q")} {
		if s := settle1(t, e, engine.Settlement{Token: l.Token, Do: engine.Ack}); s.Err != nil {
			t.Fatal(s.Err)
		}
	}
	return c
}

// loseLease makes a call whose answer is lost: it cuts the connection once so many messages
// are leased. They may have lapsed again when the cut is noticed.
func (c cutOff) loseLease(t *testing.T, call func() error, leased int) error {
	t.Helper()
	c.DropReplies(true)
	ended := make(chan error, 1)
	go func() { ended <- call() }()
	eventually(t, "messages to be leased", func() bool {
		n := 0
		for _, s := range c.engine.queue("q").shards {
			m := c.server.Do("HLEN", s.keys[stateKey])
			some, err := m.AsInt64()
			if err != nil {
				t.Fatal(err)
			}
			n += int(some)
		}
		return n == leased
	})
	c.Cut()
	select {
	case err := <-ended:
		return err
	case <-time.After(longWait):
		t.Fatal("the call does not end")
		return nil
	}
}

// stateKey is where a shard has what has happened to messages.
var stateKey = slices.Index(keyNames[:], "state")

// TestFaultLeaseAnswerLost loses leases: their messages come back when they lapse.
func TestFaultLeaseAnswerLost(t *testing.T) {
	t.Parallel()
	c := newCutOff(t, "shards=1") // so that the first script of a lease leases
	const all, leased, ttr = 1500, 700, time.Second
	l := outage.NewLedger(t, "q")
	msgs := make([]engine.Message, all)
	for n := range msgs {
		key := strconv.Itoa(n)
		msgs[n] = plain("q", key)
		l.Entries[key] = &outage.Entry{Pushed: true}
	}
	push(t, c.engine, msgs...)
	err := c.loseLease(t, func() error {
		grant, err := c.engine.Lease(t.Context(), []engine.Want{{Queue: "q", Max: leased, TTR: ttr}})
		if err != nil {
			return err
		}
		return grant.Queues[0].Err
	}, leased)
	fails(t, err, tarry.ErrUnavailable)
	l.Work(c.beside, tarry.WorkerConfig{})
	t.Logf("all were handled %v after leases of %v were lost", l.Rest(longWait), ttr)
	outage.Counts(t, c.beside, "q", longWait, 0, 0, 0)
	l.Once()
}

// TestFaultLeaseAnswerLate: the answer of a lease comes when its caller waits no more. Its
// messages are given back, the attempt not counted, also where the engine is closed first.
func TestFaultLeaseAnswerLate(t *testing.T) {
	t.Parallel()
	for _, closing := range []bool{false, true} {
		c := newCutOff(t, "shards=1")
		push(t, c.engine, plain("q", "k"))
		ctx, leave := context.WithCancel(t.Context())
		c.Delay(2 * time.Second)
		ended := make(chan error, 1)
		go func() {
			g, err := c.engine.Lease(ctx, []engine.Want{{Queue: "q", Max: 1, TTR: time.Hour}})
			if err == nil {
				err = g.Queues[0].Err
			}
			ended <- err
		}()
		eventually(t, "the message to be leased", func() bool {
			m := c.server.Do("HLEN", c.engine.queue("q").shards[0].keys[stateKey])
			n, err := m.AsInt64()
			return err == nil && n == 1
		})
		leave()
		if <-ended == nil {
			t.Skip("the answer came too soon")
		}
		closed := make(chan error, 1)
		if closing {
			go func() { closed <- c.engine.Close() }()
		}
		c.Delay(0)
		outage.Succeeds(t, longWait, func() error {
			i, err := c.beside.Get(t.Context(), tarry.ByKey("k").Of("q"))
			if err == nil && (i.State != engine.Ready || i.Attempt != 0) {
				err = fmt.Errorf("it is %v, attempt %d", i.State, i.Attempt)
			}
			return err
		})
		if closing {
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFaultClaimAnswerLost loses a claim.
func TestFaultClaimAnswerLost(t *testing.T) {
	t.Parallel()
	c := newCutOff(t, "shards=4")
	push(t, c.engine, plain("q", "k"))
	err := c.loseLease(t, func() error {
		_, err := c.engine.Claim(t.Context(), engine.Ref{Queue: "q", Key: "k"}, engine.Want{TTR: time.Second})
		return err
	}, 1)
	fails(t, err, tarry.ErrUnavailable)
	t.Logf("it came back after %v", outage.Counts(t, c.beside, "q", longWait, 0, 1, 0))
	i, err := c.beside.Get(t.Context(), tarry.ByKey("k").Of("q"))
	if err != nil || i.Attempt != 1 {
		t.Errorf("it is at attempt %d, %v", i.Attempt, err)
	}
}

// TestFaultManyCuts cuts all connections again and again, under load.
func TestFaultManyCuts(t *testing.T) {
	t.Parallel()
	c := newCutOff(t, "shards=4")
	l := outage.NewLedger(t, "q")
	l.Work(c.client, tarry.WorkerConfig{LeaseTTR: 15 * time.Second}) // lost leases come back then
	stop := l.Produce(c.client, 0, 20*time.Millisecond, 300*time.Millisecond)
	const cuts = 80
	for n := range cuts {
		c.DropReplies(n%3 == 0) // until the cut
		time.Sleep(time.Duration(20+rand.IntN(60)) * time.Millisecond)
		c.Cut()
		if n%4 == 3 {
			l.More(4, longWait) // on a slow machine nothing may be done between two cuts
		}
	}
	stop()
	t.Logf("%v after %d cuts all was handled", l.Rest(longWait), cuts)
	t.Logf("and acked %v later", outage.Counts(t, c.beside, "q", longWait, 0, 0, 0))
	if err := l.Failure(); err != nil { // mostly the lost answers can be asked for
		fails(t, err, tarry.ErrUnavailable)
	}
	if l.Handled < cuts {
		t.Errorf("only %d were handled", l.Handled)
	}
}
