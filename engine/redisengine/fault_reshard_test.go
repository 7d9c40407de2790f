package redisengine

import (
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestFaultReshard moves the slot of a shard that is in use from master to master,
// once with a rest midway.
func TestFaultReshard(t *testing.T) {
	t.Parallel()
	c := newClustered(t, "shards=4")
	s := c.engine.queue("q").shards[0]
	slot := c.slot(s)
	l := outage.NewLedger(t, "q")
	l.During = func() { time.Sleep(5 * time.Millisecond) }
	l.Work(c.client, tarry.WorkerConfig{})
	stop := l.Produce(c.client, 0, 20*time.Millisecond, time.Second, time.Hour)
	l.More(500, longWait)
	var slowest time.Duration
	move := func(to *redistest.Server, began time.Time) {
		t.Helper()
		c.MoveSlot(slot, to)
		l.Await("a message of the shard", longWait, func() bool {
			for key, e := range l.Entries {
				if e.Due.After(began) && e.Handled > 0 && c.engine.queue("q").ofKey(key) == s {
					return true
				}
			}
			return false
		})
		slowest = max(slowest, time.Since(began))
	}
	masters := c.Masters()
	for range 3 {
		for _, to := range masters {
			move(to, time.Now())
		}
	}
	t.Logf("the shard stood still for %v at most", slowest)

	// While some keys of a shard are here and some there, none of its scripts can run.
	from, to := c.Owner(slot), masters[0]
	if from == to {
		to = masters[1]
	}
	id := func(s *redistest.Server) string {
		m := s.Do("CLUSTER", "MYID")
		text, err := m.ToString()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	to.Do("CLUSTER", "SETSLOT", strconv.Itoa(slot), "IMPORTING", id(from))
	from.Do("CLUSTER", "SETSLOT", strconv.Itoa(slot), "MIGRATING", id(to))
	began := time.Now()
	time.Sleep(patience / 3)
	move(to, began)
	t.Logf("and for %v with a rest of %v midway", slowest, patience/3)

	l.More(100, longWait)
	stop()
	t.Logf("all that was due was handled %v later", l.Rest(longWait))
	l.Settled(c.client, longWait)
	l.Once()
	if err := l.Failure(); err != nil {
		t.Errorf("a push failed: %v", err)
	}
}
