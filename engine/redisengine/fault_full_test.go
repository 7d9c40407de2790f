package redisengine

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// fullRedis is a server that holds a few hundred messages of 10 KB with remembered keys, and
// the messages that it took until it was full.
func fullRedis(t *testing.T) (s *redistest.Server, c *tarry.Client, e *Engine, kept int) {
	t.Helper()
	s = redistest.Start(t, redistest.Args("--maxmemory", "8mb", "--maxmemory-policy", "noeviction"))
	e = openStore(t, s.URL())
	c = tarry.New(e, nil)
	t.Cleanup(func() { _ = c.Close() }) // it has not opened the engine
	for kept < 10_000 {
		_, err := c.Push(t.Context(), "q", make([]byte, 10_000), tarry.Key(strconv.Itoa(kept)), tarry.TTR(time.Hour), tarry.Remember(time.Hour))
		if err != nil {
			fails(t, err, tarry.ErrLimit, hintFull)
			break
		}
		kept++
	}
	if kept < 100 || kept == 10_000 {
		t.Fatalf("%d messages were kept", kept)
	}
	// So that it does not depend on the buffers of clients.
	s.Do("CONFIG", "SET", "maxmemory", strconv.Itoa(fact(t, s, "memory", "used_memory")-1<<20))
	return s, c, e, kept
}

// TestFaultFull uses a Redis whose memory is full, until it no longer is.
func TestFaultFull(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c, e, kept := fullRedis(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	refused := func(queue string) {
		t.Helper()
		_, err := c.Push(ctx, queue, make([]byte, 10_000))
		fails(t, err, tarry.ErrLimit, hintFull)
	}
	refused("q")
	refused("another") // which is not known yet
	pushed, err := c.PushMany(ctx, []tarry.Draft{tarry.NewDraft("q", nil), tarry.NewDraft("q", nil)})
	check(err)
	for _, p := range pushed {
		fails(t, p.Err, tarry.ErrLimit, hintFull)
	}
	if len(pushed) != 2 {
		t.Errorf("of 2 pushes %d were answered", len(pushed))
	}

	key := func(n int) tarry.Ref { return tarry.ByKey(strconv.Itoa(n)).Of("q") }
	check(c.Cancel(ctx, key(0)))
	i, err := c.Get(ctx, key(1))
	check(err)
	if len(i.Body) != 10_000 {
		t.Errorf("the body has %d bytes", len(i.Body))
	}
	_, err = c.Reschedule(ctx, key(2), tarry.In(time.Hour))
	check(err)
	outage.Counts(t, c, "q", 0, 1, int64(kept)-2, 0)
	p, err := c.ListPage(ctx, engine.ListQuery{Queue: "q", State: tarry.Ready, Limit: 5, Body: true})
	check(err)
	if len(p.Messages) != 5 {
		t.Errorf("%d messages are listed", len(p.Messages))
	}
	_, err = c.Forecast(ctx, "q", time.Minute, time.Hour)
	check(err)
	check(c.Pause(ctx, "q", time.Hour))
	check(c.Resume(ctx, "q"))
	claimed, err := c.Claim(ctx, key(3), tarry.LeaseOptions{})
	check(err)
	leases := append(leaseSome(t, e, 6), claimed)
	settled, err := c.Settle(ctx, []tarry.Settlement{
		{Token: leases[0].Token, Do: engine.Ack},
		{Token: leases[1].Token, Do: engine.Extend},
		{Token: leases[2].Token, Do: engine.Retry, Reason: "again"},
		{Token: leases[3].Token, Do: engine.Snooze, When: &engine.When{In: time.Hour}},
		{Token: leases[4].Token, Do: engine.Release},
		{Token: leases[5].Token, Do: engine.Bury, Reason: "hopeless"},
		{Token: leases[6].Token, Do: engine.Ack},
	})
	check(err)
	for _, s := range settled {
		check(s.Err)
	}
	n, err := c.Redrive(ctx, "q", nil, 0)
	check(err)
	if n.Redriven != 1 {
		t.Errorf("%d were redriven", n.Redriven)
	}
	refused("q")

	// A worker frees memory.
	l := outage.NewLedger(t, "q")
	for n := range kept {
		l.Entries[strconv.Itoa(n)] = &outage.Entry{}
	}
	l.Work(c, tarry.WorkerConfig{})
	l.Await("half of the messages", longWait, func() bool { return l.Handled > kept/2 })
	// What was handled is acked, and the memory freed, a moment later.
	outage.Succeeds(t, longWait, func() error {
		_, err := c.Push(ctx, "q", make([]byte, 10_000), tarry.In(time.Hour))
		return err
	})
}

// TestFaultFullFromTheStart opens a store whose memory is full: it must open to be emptied.
func TestFaultFullFromTheStart(t *testing.T) {
	t.Parallel()
	s, _, _, kept := fullRedis(t)
	c := openClient(t, s.URL())
	l := outage.NewLedger(t, "q")
	for n := range kept {
		l.Entries[strconv.Itoa(n)] = &outage.Entry{Pushed: true}
	}
	l.Work(c, tarry.WorkerConfig{})
	l.Rest(longWait)
	outage.Counts(t, c, "q", longWait, 0, 0, 0)
	if _, err := c.Push(t.Context(), "q", make([]byte, 10_000), tarry.In(time.Hour)); err != nil {
		t.Error(err)
	}
}

// TestFaultFullOfHistory fills memory with finished messages: they make room for pushes, those
// that ended first before others.
func TestFaultFullOfHistory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL(), "history=1h")
	const n = 10_000
	for from := range n / 1000 {
		msgs := make([]engine.Message, 1000)
		for i := range msgs {
			msgs[i] = plain("q", strconv.Itoa(1000*from+i))
		}
		ack(t, e, msgs...)
	}
	s.Do("CONFIG", "SET", "maxmemory", strconv.Itoa(fact(t, s, "memory", "used_memory")-100<<10))
	outage.Succeeds(t, longWait, func() error {
		r, err := e.Push(t.Context(), []engine.Message{plain("q", "new")})
		if err == nil {
			err = r[0].Err
		}
		return err
	})
	q, err := e.Queue(t.Context(), "q")
	if err != nil || q.Ready != 1 || q.History == n || q.History < n/2 {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: strconv.Itoa(n - 1)}); err != nil {
		t.Error(err)
	}
	if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "0"}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("the first is kept: %v", err)
	}
}

// leaseSome leases n messages.
func leaseSome(t *testing.T, e *Engine, n int) []engine.Lease {
	t.Helper()
	grant, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: n}})
	if err == nil {
		err = grant.Queues[0].Err
	}
	if err != nil || len(grant.Queues[0].Messages) != n {
		t.Fatalf("leased %d messages of %d, %v", len(grant.Queues[0].Messages), n, err)
	}
	return grant.Queues[0].Messages
}
