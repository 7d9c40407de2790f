package peer

import (
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/bench/scenario"
	_ "github.com/tarryhq/tarry/engine/memengine"
)

func TestRun(t *testing.T) {
	c, err := tarry.Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := scenario.Tarry(c)
	defer s.Close()
	run := func(l Load, want int) {
		t.Helper()
		l.Queue = scenario.Queue
		n, took, err := Run(t.Context(), s, l)
		if n != want || took <= 0 || err != nil {
			t.Errorf("%d of %d are done after %v: %v", n, want, took, err)
		}
	}
	first := time.Now().Add(time.Hour).Truncate(time.Second)
	run(Load{Kind: "push", Clients: 3, Batch: 1, From: 10, To: 27, First: first, Step: time.Second}, 17)
	run(Load{Kind: "push", Clients: 2, Batch: 10, From: 27, To: 60, First: first}, 33)
	run(Load{Kind: "cancel", Clients: 4, Batch: 1, From: 20, To: 30}, 10)
	if q, err := c.Queue(t.Context(), scenario.Queue); err != nil || q.Scheduled != 40 {
		t.Errorf("%d are scheduled: %v", q.Scheduled, err)
	}
	m, err := c.Get(t.Context(), tarry.ByKey(scenario.Key(15)).Of(scenario.Queue))
	if err != nil || !m.Due.Equal(first.Add(5*time.Second)) {
		t.Errorf("message 15 is due at %v: %v", m.Due, err)
	}
	if _, _, err := Run(t.Context(), s, Load{Kind: "cancel", Queue: scenario.Queue, Clients: 1, Batch: 1, From: 20, To: 21}); !errors.Is(err, tarry.ErrNotFound) {
		t.Errorf("cancelled again: %v", err)
	}
	began := time.Now()
	n, _, err := Run(t.Context(), s, Load{Kind: "push", Queue: "other", Clients: 2, Batch: 1, To: 1 << 40, First: first, For: 20 * time.Millisecond})
	if took := time.Since(began); n == 0 || err != nil || took < 20*time.Millisecond || took > time.Minute {
		t.Errorf("%d are done in %v: %v", n, took, err)
	}
}

func TestNumbered(t *testing.T) {
	for _, i := range []int{0, 7, 1 << 30} {
		if got := number(numbered(i)); got != i {
			t.Errorf("%d is %d", i, got)
		}
	}
}
