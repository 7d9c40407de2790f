package beanstalk

import (
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// TestHeld compares what a connection holds with a plain model, through random changes: which
// jobs are held, which are over, and which is over first.
func TestHeld(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	now := time.Now().Add(time.Hour) // no timer runs in this test
	h := &held{s: new(Server)}
	model := make(map[engine.ID]time.Time) // until when
	var timeouts uint64
	for range 20_000 {
		switch id := engine.ID(r.IntN(50)); r.IntN(4) {
		case 0:
			if until, ok := model[id]; ok && now.Before(until) && r.IntN(10) > 0 {
				continue // it is rare that the store takes away what is held here
			}
			model[id] = now.Add(time.Duration(1+r.IntN(20)) * time.Second)
			h.add(&job{id: id, until: model[id]})
		case 1:
			j := h.take(id, true)
			if until, ok := model[id]; ok != (j != nil) || ok && (!j.until.Equal(until) || j.timedOut != !now.Before(until)) {
				t.Fatalf("job %d, until %v, is %+v", id, until, j)
			}
			if j != nil && r.IntN(2) == 0 {
				h.add(j)
			} else {
				delete(model, id)
			}
		case 2:
			j := h.find(id)
			if until, ok := model[id]; (ok && now.Before(until)) != (j != nil) {
				t.Fatalf("job %d, until %v, is %+v", id, until, j)
			}
		case 3:
			before := now
			now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			h.expire(now)
			for _, until := range model {
				if before.Before(until) && !now.Before(until) {
					timeouts++
				}
			}
		}
		var first time.Time
		for _, until := range model {
			if now.Before(until) && (first.IsZero() || until.Before(first)) {
				first = until
			}
		}
		if got := h.soonest(); !got.Equal(first) {
			t.Fatalf("the first is over at %v, want %v", got, first)
		}
	}
	if n := h.s.counts.timeouts.Load(); n != timeouts || n == 0 {
		t.Errorf("%d timeouts, want %d", n, timeouts)
	}
}

// TestManyHeld: neither a reserve nor the end of a job's time looks at all jobs that are held, and
// few of those that timed out are kept.
func TestManyHeld(t *testing.T) {
	const jobs = 300_000
	began := time.Now()
	now := began.Add(time.Hour)
	h := &held{s: new(Server)}
	for i := range jobs {
		h.add(&job{id: engine.ID(i + 1), until: now.Add(time.Duration(i) * time.Millisecond)})
		h.soonest()
	}
	for i := range jobs {
		h.expire(now.Add(time.Duration(i) * time.Millisecond))
	}
	if n := h.s.counts.timeouts.Load(); n != jobs {
		t.Errorf("%d timeouts", n)
	}
	if n := len(h.jobs); n == 0 || n > mostTimedOut {
		t.Errorf("%d jobs are kept", n)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// TestDeleteOfALostJob: a job whose lease the store ended early, as after a step of its clock, is
// ready, and its old holder may delete it as such.
func TestDeleteOfALostJob(t *testing.T) {
	f := serve(t, nil)
	f.dial(t).put(0, 0, 60, 1)
	got, err := f.c.LeaseNow(t.Context(), []engine.Want{{Queue: defaultTube, Max: 1}})
	if err != nil {
		t.Fatal(err)
	}
	l := got.Queues[0].Messages[0]
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := newConn(&listener{s: f.Server, ctx: t.Context(), open: t.Context()}, ours)
	c.held.add(&job{id: l.ID, token: l.Token, tube: f.tubes.known(defaultTube), until: time.Now().Add(time.Hour)})
	if _, err := f.settle(t.Context(), engine.Settlement{Token: l.Token, Do: engine.Release}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.delete(args{id: l.ID}); got != "DELETED" || err != nil {
		t.Error(got, err)
	}
}

// TestMemoryForTheLargestJob: while a buffer grows for it, it is there twice, and once more when
// it is reserved.
func TestMemoryForTheLargestJob(t *testing.T) {
	eng := memengine.New(nil)
	defer eng.Close()
	c := tarry.New(eng, &tarry.Config{MaxBody: 1 << 30})
	defer c.Close()
	s, err := New(c, &Config{MaxJob: 1 << 30})
	if err != nil || s.memory.most < 3<<30 {
		t.Errorf("%d bytes, %v", s.memory.most, err)
	}
}
