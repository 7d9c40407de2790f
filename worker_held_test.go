package tarry_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// way is the way of one process to an engine that several share: its leases take a
// while, and are counted.
type way struct {
	*memengine.Engine
	trip  time.Duration
	calls atomic.Int64 // of Lease
	ahead atomic.Int64 // of the queue q, leased and not begun
	most  atomic.Int64
}

func (w *way) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	time.Sleep(w.trip)
	w.calls.Add(1)
	g, err := w.Engine.Lease(ctx, wants)
	for i, got := range g.Queues {
		if wants[i].Queue == "q" {
			n := w.ahead.Add(int64(len(got.Messages)))
			w.most.Store(max(w.most.Load(), n))
		}
	}
	return g, err
}

func configure(t *testing.T, e *memengine.Engine, s tarry.Settings) {
	t.Helper()
	if _, err := e.Configure(t.Context(), "q", s, ""); err != nil {
		t.Fatal(err)
	}
}

// Where places are few, a worker takes none of them ahead, however quick it is with
// another queue, from those who could begin.
func TestWorkersShareWhatIsInFlight(t *testing.T) {
	eng := memengine.New(nil)
	ways := []*way{{Engine: eng, trip: 10 * time.Millisecond}, {Engine: eng, trip: 30 * time.Millisecond}}
	slots := []int{4, 20}
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		const n = 500
		configure(t, eng, tarry.Settings{InFlight: 10})
		pushBurst(t, c, "q", n)
		pushBurst(t, c, "quick", 30_000)
		quick := tarry.NewTopic[string]("quick")
		var running, most, handled atomic.Int64
		for i, e := range ways {
			own := tarry.New(e, nil)
			defer func() {
				if err := own.Close(); err != nil {
					t.Error(err)
				}
			}()
			w := tarry.NewWorker(own, &tarry.WorkerConfig{Concurrency: slots[i]})
			tarry.Handle(w, bytesTopic, func(context.Context, claimed) error {
				e.ahead.Add(-1)
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(20 * time.Millisecond)
				running.Add(-1)
				handled.Add(1)
				return nil
			})
			if i == 0 {
				tarry.Handle(w, quick, func(context.Context, claimed) error { time.Sleep(time.Millisecond); return nil })
			}
			defer run(t, w)()
		}
		pass(20 * time.Second)
		if handled.Load() != n || most.Load() > 10 {
			t.Errorf("%d of %d handled, %d at once", handled.Load(), n, most.Load())
		}
		for i, e := range ways {
			if e.most.Load() > int64(slots[i]) {
				t.Errorf("worker %d has leased %d ahead; it has %d slots", i, e.most.Load(), slots[i])
			}
		}
	})
}

// What is due at once is handed out at its rate, told how late it is, and asked for no
// more often than some can be had.
func TestWorkerAtARate(t *testing.T) {
	e := &way{Engine: memengine.New(nil)}
	bubbleOn(t, e, func(t *testing.T, c *tarry.Client) {
		const (
			n    = 100_000
			rate = 1000
			span = 20
		)
		configure(t, e.Engine, tarry.Settings{Rate: rate})
		for range n / tarry.MaxBatch {
			drafts := make([]tarry.Draft, tarry.MaxBatch)
			for i := range drafts {
				drafts[i] = tarry.NewDraft("q", nil, tarry.In(time.Second))
			}
			if _, err := c.PushMany(t.Context(), drafts); err != nil {
				t.Fatal(err)
			}
		}
		var late list[time.Duration]
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: func(e tarry.Event) {
			if e.Kind == tarry.Started {
				late.add(e.Lateness)
			}
		}})
		tarry.Handle(w, bytesTopic, func(context.Context, claimed) error { return nil })
		stop := run(t, w)
		pass(time.Second + span*time.Second)
		begun := late.all()
		if got := len(begun); got < rate*span*98/100 || got > rate*span*102/100 {
			t.Errorf("%d begun in %d s; want %d a second", got, span, rate)
		}
		for _, second := range []int{1, 5, 10, 19} {
			want := time.Duration(second) * time.Second
			if got := begun[second*rate]; got < want*94/100-150*time.Millisecond || got > want*102/100 {
				t.Errorf("the %dth was %s late; want about %s", second*rate, got, want)
			}
		}
		if calls := e.calls.Load(); calls > span*220 {
			t.Errorf("asked %d times in %d s", calls, span)
		}
		stop()
	})
}

// Nobody asks again and again for what is held back.
func TestWorkerRestsWhileAllIsHeldBack(t *testing.T) {
	e := &way{Engine: memengine.New(nil)}
	bubbleOn(t, e, func(t *testing.T, c *tarry.Client) {
		configure(t, e.Engine, tarry.Settings{InFlight: 1})
		pushBurst(t, c, "q", 100)
		e.calls.Store(0)
		var handled atomic.Int64
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, claimed) error {
			if handled.Add(1) == 1 {
				time.Sleep(time.Hour)
			}
			return nil
		})
		stop := run(t, w)
		pass(time.Hour - time.Second)
		if calls := e.calls.Load(); calls > 125 || handled.Load() != 1 {
			t.Errorf("asked %d times in an hour, %d begun", calls, handled.Load())
		}
		pass(2 * time.Second)
		if handled.Load() != 100 {
			t.Errorf("%d handled when the first had ended", handled.Load())
		}
		stop()
	})
}

// However workers come and go and settings change, no more are handled at once than may,
// no more begun than the rate gives, and each message once.
func TestWorkersThatComeAndGoBeneathLimits(t *testing.T) {
	eng := memengine.New(nil)
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		const n, rate, burst = 3000, 300, 30
		limits := []int64{7, 3, 12}
		most := int64(7)
		configure(t, eng, tarry.Settings{InFlight: most, Rate: rate, Burst: burst})
		pushBurst(t, c, "q", n)
		start := time.Now()
		var mu sync.Mutex
		running, handled := int64(0), make(map[tarry.ID]int)
		handle := func(_ context.Context, m claimed) error {
			mu.Lock()
			if running++; running > most {
				t.Errorf("%d handlers at once; %d may be", running, most)
			}
			if handled[m.ID]++; handled[m.ID] > 1 {
				t.Errorf("message %s is handled again", m.ID)
			}
			if may := rate*time.Since(start).Seconds() + burst + 1; float64(len(handled)) > may {
				t.Errorf("%d begun after %v", len(handled), time.Since(start))
			}
			mu.Unlock()
			time.Sleep(time.Duration(m.ID%25) * time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		}
		work := func() (stop func()) {
			own := tarry.New(eng, nil)
			w := tarry.NewWorker(own, &tarry.WorkerConfig{Concurrency: 8})
			tarry.Handle(w, bytesTopic, handle)
			end := run(t, w)
			return func() {
				end()
				if err := own.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		for i := range 40 {
			stops := []func(){work(), work()}
			pass(time.Duration(20+7*i) * time.Millisecond)
			for _, stop := range stops {
				stop()
			}
			mu.Lock()
			most = limits[i%len(limits)]
			mu.Unlock()
			configure(t, eng, tarry.Settings{InFlight: most, Rate: rate, Burst: burst})
		}
		stop := work()
		pass(20 * time.Second)
		stop()
		if q, err := c.Queue(t.Context(), "q"); err != nil || len(handled) != n || q.Ready+q.Leased+q.Scheduled+q.Dead != 0 {
			t.Errorf("%d of %d handled, left %+v, %v", len(handled), n, q, err)
		}
	})
}
