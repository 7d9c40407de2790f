package redisengine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestIdle counts the commands that Redis is given while a worker waits on two queues
// of four shards each.
func TestIdle(t *testing.T) {
	t.Parallel()
	for _, pending := range []int{0, 20_000} {
		t.Run(fmt.Sprintf("%d pending", pending), func(t *testing.T) {
			t.Parallel()
			idle(t, pending)
		})
	}
}

func idle(t *testing.T, pending int) {
	s := redistest.Start(t)
	c := openClient(t, s.URL(), "shards=4")
	queues := [...]string{"q", "r"}
	for n := 0; n < pending; n += 1000 {
		msgs := make([]engine.Message, 1000)
		for i := range msgs {
			msgs[i] = tarry.NewDraft(queues[i%2], nil, tarry.In(time.Duration(1+n+i)*time.Hour))
		}
		if pushed, err := c.PushMany(t.Context(), msgs); err != nil || slices.ContainsFunc(pushed, func(p tarry.Pushed) bool { return p.Err != nil }) {
			t.Fatal(pushed, err)
		}
	}
	l := outage.NewLedger(t, queues[0])
	l.Push(c, "now", 0)
	l.Work(c, tarry.WorkerConfig{}, queues[1:]...)
	l.Rest(longWait)
	outage.Counts(t, c, queues[0], longWait, int64(pending)/2, 0, 0)

	const seconds, looks = 10, 20 // often enough that the connection for INFO needs no pings
	before := fact(t, s, "stats", "total_commands_processed")
	look := func() (n int) {
		time.Sleep(seconds * time.Second / looks)
		after := fact(t, s, "stats", "total_commands_processed")
		n, before = after-before-1, after
		return n
	}
	for _, round := range []bool{false, true} { // once it rests, from the end of a round on: the time is that of two
		for end := time.Now().Add(longWait); look() > 5 != round && time.Now().Before(end); {
		}
	}
	n, began := 0, time.Now()
	for range looks {
		n += look()
	}
	took := time.Since(began).Seconds()
	t.Logf("%d commands in %.1f s", n, took)
	if float64(n) > 3*took {
		t.Error("those are too many")
	}
	if n == 0 {
		t.Error("nothing was looked after")
	}
}
