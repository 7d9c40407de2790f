package pgengine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// Calls of several processes on the same keys return no deadlock, lease nothing twice, and leave
// correct counts.
func TestStorm(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	engines := []*Engine{another(t, connect(t, pool.Config().ConnString()), schema), another(t, connect(t, pool.Config().ConnString()), schema), another(t, pool, schema)}
	ctx := t.Context()
	queues := []string{"a", "b"}
	_, err := engines[0].Configure(ctx, "b", engine.Settings{DeadMax: 5, MaxPending: 60, InFlight: 7}, "")
	ok(t, err)
	until := time.Now().Add(3 * time.Second)
	var held sync.Map // leases that are not settled
	var inFlight atomic.Int64
	var calls atomic.Int64
	var work sync.WaitGroup
	for g := range 24 {
		work.Go(func() {
			e := engines[g%len(engines)]
			r := rand.New(rand.NewPCG(uint64(g), 2))
			fail := func(op string, err error) {
				if err != nil {
					t.Errorf("%s: %v", op, err)
				}
			}
			for time.Now().Before(until) && !t.Failed() {
				calls.Add(1)
				q := queues[r.IntN(2)]
				key := func() string { return fmt.Sprint(r.IntN(50)) }
				switch n := r.IntN(100); {
				case n < 35:
					var msgs []engine.Message
					for range 1 + r.IntN(8) {
						m := engine.Message{Queue: queues[r.IntN(2)], Key: key(), OnConflict: []engine.Conflict{engine.Keep, engine.Replace, engine.Reject}[r.IntN(3)]}
						m.Remember = []time.Duration{0, 20 * time.Millisecond, time.Minute}[r.IntN(3)]
						m.Due.In = time.Duration(r.IntN(20)) * time.Millisecond
						if r.IntN(3) == 0 {
							m.ExpireAfter = time.Duration(1+r.IntN(40)) * time.Millisecond
						}
						m.MaxAttempts = uint32(1 + r.IntN(2))
						if r.IntN(2) == 0 {
							m.Key = ""
						}
						msgs = append(msgs, m)
					}
					_, err := e.Push(ctx, msgs)
					fail("push", err)
				case n < 65:
					g, err := e.Lease(ctx, []engine.Want{{Queue: "a", Max: 1 + r.IntN(20), TTR: time.Minute, Remote: true}, {Queue: "b", Max: 3, TTR: time.Minute, Remote: true}})
					fail("lease", err)
					if err != nil {
						continue
					}
					var s []engine.Settlement
					for k := range g.Queues {
						if n := inFlight.Add(int64(k * len(g.Queues[k].Messages))); n > 7 {
							t.Errorf("%d in flight", n)
						}
						for _, l := range g.Queues[k].Messages {
							if _, twice := held.LoadOrStore(l.ID, l.Token); twice {
								t.Errorf("%d is leased twice", l.ID)
							}
							s = append(s, engine.Settlement{Token: l.Token, Do: []engine.Action{engine.Ack, engine.Ack, engine.Retry, engine.Bury, engine.Release, engine.Snooze}[r.IntN(6)], When: &engine.When{In: time.Millisecond}})
							held.Delete(l.ID)
						}
					}
					inFlight.Add(int64(-len(g.Queues[1].Messages)))
					if len(s) > 0 {
						got, err := e.Settle(ctx, s)
						fail("settle", err)
						for i := range got {
							fail("settle one", got[i].Err)
						}
					}
				case n < 80:
					var refs []engine.Ref
					for range 1 + r.IntN(5) {
						refs = append(refs, engine.Ref{Queue: q, Key: key()})
					}
					_, err := e.Cancel(ctx, refs)
					fail("cancel", err)
				case n < 85:
					_, err := e.Reschedule(ctx, engine.Ref{Queue: q, Key: key()}, engine.When{In: time.Millisecond})
					if errors.Is(err, engine.ErrUnavailable) {
						fail("reschedule", err)
					}
				case n < 88:
					_, err := e.Redrive(ctx, q, nil, 10)
					fail("redrive", err)
				case n < 89:
					_, err := e.Purge(ctx, q, engine.PurgeDead|engine.PurgeFinished)
					fail("purge", err)
				case n < 94:
					_, _, err := e.store.Fold(ctx, 0)
					fail("fold", err)
				default:
					_, err := e.Queue(ctx, q)
					fail("queue", err)
				}
			}
		})
	}
	work.Wait()
	var locks int64
	ok(t, pool.QueryRow(ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&locks))
	t.Logf("%d calls, %d deadlocks", calls.Load(), locks)
	for _, q := range queues {
		var waiting, leased, dead, finished int64
		ok(t, pool.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FILTER (WHERE kind < 2), count(*) FILTER (WHERE kind = 2), count(*) FILTER (WHERE kind = 3),
			(SELECT count(*) FROM %[1]s.memory m JOIN %[1]s.queue q ON q.num = m.queue WHERE name = $1)
			FROM %[1]s.message m JOIN %[1]s.queue q ON q.num = m.queue WHERE name = $1`, schema), q).Scan(&waiting, &leased, &dead, &finished))
		info, err := engines[0].Queue(ctx, q)
		ok(t, err)
		if info.Scheduled+info.Ready != waiting || info.Leased != leased || info.Dead != dead || info.Finished != finished {
			t.Errorf("%+v; the rows are %d waiting, %d leased, %d dead, %d finished", info, waiting, leased, dead, finished)
		}
	}
}
