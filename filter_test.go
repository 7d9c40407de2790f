package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// swept is an engine that tells what sweeps do to it.
type swept struct {
	*memengine.Engine
	caps       func(*engine.Capabilities)
	cancel     func(n int) // called before each Cancel of n messages
	reschedule func(engine.ID) error
	redrive    func(n int) // called behind each Redrive
}

func (s *swept) Capabilities() engine.Capabilities {
	caps := s.Engine.Capabilities()
	if s.caps != nil {
		s.caps(&caps)
	}
	return caps
}

func (s *swept) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	if s.cancel != nil {
		s.cancel(len(refs))
	}
	return s.Engine.Cancel(ctx, refs)
}

func (s *swept) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	if s.reschedule != nil {
		if err := s.reschedule(ref.ID); err != nil {
			return engine.Info{}, err
		}
	}
	return s.Engine.Reschedule(ctx, ref, due)
}

func (s *swept) Redrive(ctx context.Context, queue string, ids []engine.ID, limit int) (engine.Redriven, error) {
	r, err := s.Engine.Redrive(ctx, queue, ids, limit)
	if s.redrive != nil {
		s.redrive(len(ids))
	}
	return r, err
}

// lease takes n messages of the queue q.
func leaseSome(t *testing.T, c *tarry.Client, n int) []tarry.Lease {
	t.Helper()
	var all []tarry.Lease
	for len(all) < n {
		got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: min(n-len(all), 1000)})
		if err != nil || len(got.Messages) == 0 {
			t.Fatalf("leased %d of %d, %v", len(all), n, err)
		}
		all = append(all, got.Messages...)
	}
	return all
}

// bury makes n messages of the queue q dead, all in this instant.
func bury(t *testing.T, c *tarry.Client, n int, reason string, opts ...tarry.PushOption) {
	t.Helper()
	drafts := make([]tarry.Draft, n)
	for i := range drafts {
		drafts[i] = tarry.NewDraft("q", []byte("x"), opts...)
	}
	if _, err := c.PushMany(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	var dead []tarry.Settlement
	for _, l := range leaseSome(t, c, n) {
		dead = append(dead, tarry.Settlement{Token: l.Token, Do: tarry.DoBury, Reason: reason})
	}
	if _, err := c.Settle(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
}

// pushSpread pushes n messages of the queue q due one by one, a step apart.
func pushSpread(t *testing.T, c *tarry.Client, n int, first, step time.Duration) {
	t.Helper()
	drafts := make([]tarry.Draft, n)
	for i := range drafts {
		drafts[i] = tarry.NewDraft("q", nil, tarry.In(first+time.Duration(i)*step), tarry.Key(fmt.Sprintf("k/%d", i)))
	}
	if _, err := c.PushMany(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, c *tarry.Client, scheduled, ready, leased, dead int64) {
	t.Helper()
	q, err := c.Queue(t.Context(), "q")
	if err != nil || q.Scheduled != scheduled || q.Ready != ready || q.Leased != leased || q.Dead != dead {
		t.Errorf("holds %d scheduled, %d ready, %d leased, %d dead, %v; want %d, %d, %d, %d",
			q.Scheduled, q.Ready, q.Leased, q.Dead, err, scheduled, ready, leased, dead)
	}
}

func TestListWhere(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		start := time.Now()
		at := func(d time.Duration) time.Time { return start.Add(d) }
		for i, reason := range []string{"timeout: merchant", "no such order", "timeout: bank"} {
			bury(t, c, 1, reason, tarry.Key(fmt.Sprint("dead-", i)))
			pass(time.Minute)
		}
		push(t, c, "q", "r", tarry.Key("ready-0"))
		push(t, c, "q", "r", tarry.Key("ready-1"))
		push(t, c, "q", "s", tarry.Key("sched-0"), tarry.In(time.Hour))
		push(t, c, "q", "s", tarry.Key("sched-1"), tarry.In(2*time.Hour), tarry.Header("a", "b"), tarry.Header("c:d", ""))
		leaseSome(t, c, 1)
		for name, tc := range map[string]struct {
			filter tarry.Filter
			want   string
		}{
			"all":      {tarry.Filter{}, "sched-0 sched-1 ready-1 ready-0 dead-0 dead-1 dead-2"},
			"states":   {tarry.Filter{States: []tarry.State{tarry.Dead, tarry.Ready, tarry.Dead}}, "ready-1 dead-0 dead-1 dead-2"},
			"error":    {tarry.Filter{Error: "timeout"}, "dead-0 dead-2"},
			"regexp":   {tarry.Filter{Match: func(m *tarry.Info) bool { return regexp.MustCompile("^no .* order$").MatchString(m.LastError) }}, "dead-1"},
			"prefix":   {tarry.Filter{KeyPrefix: "ready"}, "ready-1 ready-0"},
			"limit":    {tarry.Filter{Limit: 3}, "sched-0 sched-1 ready-1"},
			"from, to": {tarry.Filter{States: []tarry.State{tarry.Dead}, From: at(time.Minute), To: at(2 * time.Minute)}, "dead-1"},
			"to":       {tarry.Filter{States: []tarry.State{tarry.Scheduled, tarry.Ready}, To: at(2 * time.Hour)}, "sched-0 ready-1"},
			"both":     {tarry.Filter{Error: "timeout", From: at(time.Second)}, "dead-2"},
			"newest":   {tarry.Filter{Newest: true, Limit: 5}, "sched-1 sched-0 ready-1 ready-0 dead-2"},
			"latest 2": {tarry.Filter{Newest: true, Limit: 2, States: []tarry.State{tarry.Dead}, To: at(2 * time.Minute)}, "dead-1 dead-0"},
			"reversed": {tarry.Filter{From: at(time.Hour), To: at(time.Minute)}, ""},
			"header":   {tarry.Filter{Header: "a"}, "sched-1"},
			"value":    {tarry.Filter{Header: "a:b"}, "sched-1"},
			"value =":  {tarry.Filter{Header: "a=b"}, "sched-1"},
			"no value": {tarry.Filter{Header: "c:d:"}, "sched-1"},
			"other":    {tarry.Filter{Header: "a:"}, ""},
			"no name":  {tarry.Filter{Header: "c"}, ""},
			"nothing":  {tarry.Filter{Error: "timeout", KeyPrefix: "ready"}, ""},
		} {
			tc.filter.Queue = "q"
			var keys []string
			for m, err := range c.ListWhere(t.Context(), tc.filter) {
				if err != nil || m.Body != nil {
					t.Fatal(m, err)
				}
				keys = append(keys, m.Key)
			}
			if got := strings.Join(keys, " "); got != tc.want {
				t.Errorf("%s: %s\nwant %s", name, got, tc.want)
			}
		}
		for m := range c.ListWhere(t.Context(), tarry.Filter{Queue: "q", States: []tarry.State{tarry.Ready}, Body: true}) {
			if string(m.Body) != "r" {
				t.Errorf("body %q", m.Body)
			}
		}
	})
}

func TestFilterMisuse(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		p := push(t, c, "q", "x")
		for name, f := range map[string]tarry.Filter{
			"no queue": {},
			"state":    {Queue: "q", States: []tarry.State{tarry.Leased}},
			"limit":    {Queue: "q", Limit: -1},
		} {
			if n, err := c.CancelWhere(t.Context(), f); !errors.Is(err, tarry.ErrInvalid) || n != (tarry.Swept{}) {
				t.Errorf("%s: %+v, %v", name, n, err)
			}
		}
		if _, err := c.DropWhere(t.Context(), tarry.Filter{Queue: "q", States: []tarry.State{tarry.Ready}}); !errors.Is(err, tarry.ErrInvalid) {
			t.Errorf("drop of ready messages: %v", err)
		}
		if info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("q")); err != nil || info.State != tarry.Ready {
			t.Errorf("%+v, %v", info, err)
		}
	})
	for name, lack := range map[string]func(*engine.Capabilities){
		"range":    func(caps *engine.Capabilities) { caps.Range = false },
		"if_state": func(caps *engine.Capabilities) { caps.IfState = false },
	} {
		bubbleOn(t, &swept{Engine: memengine.New(nil), caps: lack}, func(t *testing.T, c *tarry.Client) {
			push(t, c, "q", "x")
			if _, err := c.CancelWhere(t.Context(), tarry.Filter{Queue: "q"}); !errors.Is(err, tarry.ErrUnsupported) {
				t.Errorf("without %s: %v", name, err)
			}
			holds(t, c, 0, 1, 0, 0)
		})
	}
}

func TestRedriveAndDropWhere(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		bury(t, c, 700, "timeout")
		bury(t, c, 300, "no such order")
		pass(time.Minute)
		since := time.Now()
		bury(t, c, 800, "timeout")
		var told []tarry.Swept
		f := tarry.Filter{Queue: "q", From: since, Error: "timeout"}
		n, err := c.RedriveWhere(t.Context(), f, func(s tarry.Swept) { told = append(told, s) })
		if err != nil || n != (tarry.Swept{Seen: 800, Done: 800}) {
			t.Errorf("redrive: %+v, %v", n, err)
		}
		if len(told) != 2 || told[0].Done != 500 || told[1] != n {
			t.Errorf("progress %+v", told)
		}
		holds(t, c, 0, 800, 0, 1000)
		if n, err := c.RedriveWhere(t.Context(), f); err != nil || n != (tarry.Swept{}) {
			t.Errorf("redrive of nothing: %+v, %v", n, err)
		}
		n, err = c.DropWhere(t.Context(), tarry.Filter{Queue: "q", Error: "no such", Limit: 250})
		if err != nil || n.Done != 250 || n.Skipped != 0 {
			t.Errorf("drop: %+v, %v", n, err)
		}
		holds(t, c, 0, 800, 0, 750)
	})
}

// What is brought back and dies again at once is not brought back again, also if that is in
// the millisecond in which the last one had died.
func TestRedriveWhereOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		newest bool
		dies   time.Duration // after it is brought back
	}{"at once": {}, "at once, newest first": {newest: true}, "later": {dies: time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			s := &swept{Engine: memengine.New(nil)}
			bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
				const n = 1200
				bury(t, c, n, "hopeless")
				pass(time.Minute)
				bury(t, c, 1, "hopeless")
				s.redrive = func(n int) {
					pass(tc.dies)
					var dead []tarry.Settlement
					for _, l := range leaseSome(t, c, n) {
						dead = append(dead, tarry.Settlement{Token: l.Token, Do: tarry.DoBury, Reason: "hopeless"})
					}
					if _, err := c.Settle(t.Context(), dead); err != nil {
						t.Error(err)
					}
				}
				got, err := c.RedriveWhere(t.Context(), tarry.Filter{Queue: "q", Newest: tc.newest, Error: "hopeless"})
				if err != nil || got != (tarry.Swept{Seen: n + 1, Done: n + 1}) {
					t.Errorf("%+v, %v", got, err)
				}
				holds(t, c, 0, 0, 0, n+1)
			})
		})
	}
}

// Newest first means the latest first, and those are what a limit is for.
func TestDropWhereNewest(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		for i := range 10 {
			bury(t, c, 100, fmt.Sprint("reason ", i))
			pass(time.Second)
		}
		n, err := c.DropWhere(t.Context(), tarry.Filter{Queue: "q", Newest: true, Limit: 650})
		if err != nil || n.Done != 650 {
			t.Errorf("%+v, %v", n, err)
		}
		holds(t, c, 0, 0, 0, 350)
		for m, err := range c.ListWhere(t.Context(), tarry.Filter{Queue: "q", Newest: true, Limit: 1}) {
			if err != nil || m.LastError != "reason 3" {
				t.Errorf("the latest that is left: %s, %v", m.LastError, err)
			}
		}
	})
}

// One whose key a live message holds is skipped, and the limit is for the others.
func TestRedriveWhereSkips(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		for _, key := range []string{"a", "b", "c", "d"} {
			bury(t, c, 1, "boom", tarry.Key(key))
			pass(time.Second)
		}
		push(t, c, "q", "live", tarry.Key("a"), tarry.In(time.Hour))
		n, err := c.RedriveWhere(t.Context(), tarry.Filter{Queue: "q", Limit: 2})
		if err != nil || n.Done != 2 || n.Skipped != 1 {
			t.Errorf("%+v, %v", n, err)
		}
		holds(t, c, 1, 2, 0, 2)
	})
}

// What falls due meanwhile is cancelled, what is leased meanwhile is skipped.
func TestCancelWhereBesideOthers(t *testing.T) {
	s := &swept{Engine: memengine.New(nil)}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		pushSpread(t, c, 1200, time.Second, time.Second)
		calls := 0
		s.cancel = func(n int) {
			switch calls++; calls {
			case 1: // the first of all 500 fall due, and some are taken
				pass(100*time.Second + time.Millisecond)
				leaseSome(t, c, 40)
			case 2:
				if n != 100 {
					t.Errorf("%d are tried again; want those that have fallen due", n)
				}
			}
		}
		n, err := c.CancelWhere(t.Context(), tarry.Filter{Queue: "q", KeyPrefix: "k/"})
		if err != nil || n.Done != 1160 || n.Skipped != 40 {
			t.Errorf("%+v, %v", n, err)
		}
		holds(t, c, 0, 0, 40, 0)
	})
}

// Who wants the scheduled ones alone does not get those that fall due meanwhile.
func TestSweepOfTheScheduledAlone(t *testing.T) {
	s := &swept{Engine: memengine.New(nil)}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		f := tarry.Filter{Queue: "q", States: []tarry.State{tarry.Scheduled}}
		pushSpread(t, c, 10, time.Minute, time.Minute)
		falls := sync.OnceFunc(func() { time.Sleep(3*time.Minute + time.Second) })
		s.reschedule = func(engine.ID) error { falls(); return nil }
		if n, err := c.RescheduleWhere(t.Context(), f, tarry.In(time.Hour)); err != nil || n != (tarry.Swept{Seen: 10, Done: 7, Skipped: 3}) {
			t.Errorf("reschedule: %+v, %v", n, err)
		}
		pass(time.Hour - time.Second)
		s.cancel = func(int) { time.Sleep(time.Second) }
		if n, err := c.CancelWhere(t.Context(), f); err != nil || n != (tarry.Swept{Seen: 7, Skipped: 7}) {
			t.Errorf("cancel: %+v, %v", n, err)
		}
		holds(t, c, 0, 10, 0, 0)
	})
}

func TestCancelWhereLeavesOthers(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		bury(t, c, 2, "boom")
		pushSpread(t, c, 10, 0, time.Minute)
		pass(3*time.Minute + time.Second)
		leaseSome(t, c, 1)
		holds(t, c, 6, 3, 1, 2)
		f := tarry.Filter{Queue: "q", States: []tarry.State{tarry.Scheduled}, To: time.Now().Add(2 * time.Minute)}
		if n, err := c.CancelWhere(t.Context(), f); err != nil || n.Done != 2 {
			t.Errorf("%+v, %v", n, err)
		}
		holds(t, c, 4, 3, 1, 2)
		if n, err := c.CancelWhere(t.Context(), tarry.Filter{Queue: "q"}); err != nil || n.Done != 7 {
			t.Errorf("%+v, %v", n, err)
		}
		holds(t, c, 0, 0, 1, 2)
	})
}

// All are due in the same instant, and each is moved once, though they are met again
// where they have come.
func TestRescheduleWhere(t *testing.T) {
	for name, in := range map[string]time.Duration{"between": 25 * time.Minute, "behind": 48 * time.Hour, "now": 0} {
		t.Run(name, func(t *testing.T) {
			s := &swept{Engine: memengine.New(nil)}
			bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
				const n = 1300
				pushSpread(t, c, n, 0, 2*time.Second)
				pass(10 * time.Minute)
				var mu sync.Mutex
				moves := make(map[engine.ID]int)
				s.reschedule = func(id engine.ID) error {
					time.Sleep(time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					moves[id]++
					return nil
				}
				// Of two that come meanwhile, one lies behind what was there.
				push(t, c, "q", "", tarry.In(24*time.Hour))
				got, err := c.RescheduleWhere(t.Context(), tarry.Filter{Queue: "q", KeyPrefix: "k/"}, tarry.In(in))
				if err != nil || got.Skipped != 0 || got.Done < n-1 || got.Done > n { // one may be due then already
					t.Errorf("%+v, %v", got, err)
				}
				for id, n := range moves {
					if n > 2 || n == 2 && in > 0 { // the second, where it fell due on the way
						t.Errorf("message %s was moved %d times", id, n)
					}
				}
				dues := make(map[time.Time]int)
				for m, err := range c.ListWhere(t.Context(), tarry.Filter{Queue: "q", KeyPrefix: "k/"}) {
					if err != nil {
						t.Fatal(err)
					}
					dues[m.Due]++
				}
				if len(dues) != 1 {
					t.Errorf("they are due at %v", dues)
				}
			})
		})
	}
}

// What is due at that very time already is left alone.
func TestRescheduleWhereAgain(t *testing.T) {
	s := &swept{Engine: memengine.New(nil)}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		pushSpread(t, c, 20, time.Hour, time.Second)
		due := tarry.At(time.Now().Add(2 * time.Hour))
		for _, want := range []int64{20, 0} {
			if n, err := c.RescheduleWhere(t.Context(), tarry.Filter{Queue: "q"}, due); err != nil || n.Done != want {
				t.Errorf("%+v, %v; want %d done", n, err, want)
			}
		}
	})
}

func TestRescheduleWhereFails(t *testing.T) {
	s := &swept{Engine: memengine.New(nil)}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		pushSpread(t, c, 400, time.Hour, time.Second)
		var calls atomic.Int32
		s.reschedule = func(engine.ID) error {
			time.Sleep(time.Millisecond)
			if calls.Add(1) > 100 {
				return engine.ErrUnavailable
			}
			return nil
		}
		n, err := c.RescheduleWhere(t.Context(), tarry.Filter{Queue: "q"}, tarry.In(time.Minute))
		if !errors.Is(err, tarry.ErrUnavailable) || n.Done != 100 || calls.Load() > 132 {
			t.Errorf("%+v, %v after %d calls", n, err, calls.Load())
		}
	})
}

// A context that ends midway leaves an honest count.
func TestSweepEndsWithItsContext(t *testing.T) {
	s := &swept{Engine: memengine.New(nil)}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		pushSpread(t, c, 1800, time.Hour, time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		n, err := c.CancelWhere(ctx, tarry.Filter{Queue: "q"}, func(s tarry.Swept) {
			if s.Done == 1000 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || n.Done != 1000 {
			t.Errorf("%+v, %v", n, err)
		}
		holds(t, c, 800, 0, 0, 0)
	})
}

// Of two who sweep the same messages each gets its share, and together they get all.
func TestSweepsBesideEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		const n = 3000
		bury(t, c, n, "boom")
		var sweeps sync.WaitGroup
		results := make([]tarry.Swept, 4)
		for i := range results {
			sweep := []func(context.Context, tarry.Filter, ...func(tarry.Swept)) (tarry.Swept, error){c.RedriveWhere, c.DropWhere}[i%2]
			sweeps.Go(func() {
				var err error
				if results[i], err = sweep(t.Context(), tarry.Filter{Queue: "q"}); err != nil {
					t.Error(err)
				}
			})
		}
		sweeps.Wait()
		redriven, dropped := results[0].Done+results[2].Done, results[1].Done+results[3].Done
		if redriven+dropped != n {
			t.Errorf("%d redriven, %d dropped; want %d together: %+v", redriven, dropped, n, results)
		}
		holds(t, c, 0, redriven, 0, 0)
		if !slices.ContainsFunc(results, func(s tarry.Swept) bool { return s.Done > 0 }) {
			t.Error("nothing was done")
		}
	})
}

// What a filter may not ask for is refused also where the engine redrives all of a queue
// without looking at them.
func TestRedriveWhereOfAPlainEngine(t *testing.T) {
	mem := memengine.New(nil)
	defer mem.Close()
	caps := mem.Capabilities()
	caps.List, caps.Range, caps.IfState = false, false, false
	c := tarry.New(&plainEngine{Whole: mem, caps: caps}, nil)
	defer c.Close()
	for _, f := range []tarry.Filter{{Queue: "q", States: []tarry.State{tarry.Ready}}, {Queue: "q", Limit: -1}} {
		if _, err := c.RedriveWhere(t.Context(), f); !errors.Is(err, tarry.ErrInvalid) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for _, f := range []tarry.Filter{{Queue: "q", Header: "h"}, {Queue: "q", KeyPrefix: "k"}} { // it cannot look at them
		if _, err := c.RedriveWhere(t.Context(), f); !errors.Is(err, tarry.ErrUnsupported) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if _, err := c.RedriveWhere(t.Context(), tarry.Filter{Queue: "q", States: []tarry.State{tarry.Dead}}); err != nil {
		t.Error(err)
	}
}
