package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/work"
)

// TestWorkerSimulation has workers meet random messages, handlers, distances, pauses,
// cancels and drains. Set TARRY_TEST_SEED to replay one run.
func TestWorkerSimulation(t *testing.T) {
	runs, seed := uint64(15), rand.Uint64()
	if s := os.Getenv("TARRY_TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("TARRY_TEST_SEED: %v", err)
		}
		runs, seed = 1, n
	}
	t.Logf("%d runs from seed %d", runs, seed)
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			defer func() { // a bubble that fails ends the test
				if t.Failed() {
					t.Logf("replay with TARRY_TEST_SEED=%d", seed+i)
				}
			}()
			newSim(t, seed+i).run()
		})
	}
}

// sim is one run. In a rough one leases are lost: they are shorter than some calls, and
// calls fail; then attempts count that nobody sees.
type sim struct {
	t     *testing.T
	seed  uint64
	eng   *distant
	c     *tarry.Client
	rough bool
	calm  bool // handlers succeed at once
	bound map[string]int

	mu     sync.Mutex
	random *rand.Rand
	msgs   map[tarry.ID]*simMessage
	now    map[string]int // handlers that run, by queue and worker
}

// simMessage is what must be true of a message.
type simMessage struct {
	queue     string
	counted   uint32          // attempts
	begun     map[uint32]bool // rough: which were seen
	running   bool
	acked     int
	cancelled bool
}

// distant is an engine some way off, whose calls fail at times.
type distant struct {
	*troubled
	sim  *sim
	trip time.Duration
}

func (e *distant) travel() error {
	time.Sleep(e.sim.upTo(e.trip / 2))
	if e.sim.rough && e.sim.one(20) {
		return engine.ErrUnavailable
	}
	return nil
}

func (e *distant) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	if err := e.travel(); err != nil {
		return engine.Grant{}, err
	}
	defer e.travel()
	return e.troubled.Lease(ctx, wants)
}

func (e *distant) LeaseWait(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	if err := e.travel(); err != nil {
		return engine.Waited{}, err
	}
	defer e.travel()
	hint := make(chan struct{}, 1)
	defer e.Watch(func(string) {
		select {
		case hint <- struct{}{}:
		default:
		}
	})()
	wants := wantsOf(w)
	for end := time.Now().Add(w.For); ; {
		next := end
		g := engine.Grant{Queues: make([]engine.Granted, len(wants))}
		came, left := false, w.Max
		for i, want := range wants {
			if want.Max = min(want.Max, left); want.Max == 0 {
				continue
			}
			got, err := e.Engine.Lease(ctx, []engine.Want{want})
			if err != nil && !came {
				return engine.Waited{}, err
			}
			if err != nil { // what was leased before is the caller's
				return waitedOf(wants, g), nil
			}
			g.Now, g.Queues[i] = got.Now, got.Queues[0]
			left -= len(got.Queues[0].Messages)
			came = came || len(got.Queues[0].Messages) > 0
			if due := g.Queues[i].NextDue; !due.IsZero() && due.Before(next) {
				next = due
			}
		}
		if came || !time.Now().Before(end) {
			return waitedOf(wants, g), nil
		}
		select {
		case <-time.After(time.Until(next)):
		case <-hint:
		case <-ctx.Done():
			return engine.Waited{}, ctx.Err()
		}
	}
}

func (e *distant) Settle(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
	if err := e.travel(); err != nil {
		return nil, err
	}
	defer e.travel()
	return e.troubled.Settle(ctx, in)
}

func newSim(t *testing.T, seed uint64) *sim {
	s := &sim{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), bound: make(map[string]int),
		msgs: make(map[tarry.ID]*simMessage), now: make(map[string]int)}
	s.rough = s.one(3)
	s.eng = &distant{newTroubled(), s, s.upTo(20 * time.Millisecond)}
	wait := s.one(3)
	s.eng.caps = func(caps *engine.Capabilities) { caps.LeaseWait = wait }
	for i := range 1 + s.below(4) {
		s.bound[fmt.Sprint("q", i)] = s.below(4)
	}
	s.c = tarry.New(s.eng, nil)
	return s
}

func (s *sim) below(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func (s *sim) one(in int) bool { return s.below(in) == 0 }

func (s *sim) upTo(d time.Duration) time.Duration { return time.Duration(s.below(int(d) + 1)) }

func (s *sim) queue() string { return fmt.Sprint("q", s.below(len(s.bound))) }

func (s *sim) run() {
	for range 1 + s.below(4) {
		var stops []func()
		for i := range 1 + s.below(2) {
			stops = append(stops, s.work(fmt.Sprint("w", i)))
		}
		for range s.below(40) {
			s.disturb()
			time.Sleep(s.upTo(30 * time.Millisecond))
		}
		time.Sleep(s.upTo(time.Second))
		for _, stop := range stops {
			stop()
		}
		s.check()
	}
	s.calm = true
	for q := range s.bound {
		if err := s.c.Resume(s.t.Context(), q); err != nil {
			s.t.Error(err)
		}
	}
	stop := s.work("last")
	for before := -1; before != s.live(); time.Sleep(time.Minute) { // as long as it gets on
		before = s.live()
	}
	stop()
	s.check()
	for id, m := range s.msgs {
		info, err := s.c.Get(s.t.Context(), tarry.ByID(id).Of(m.queue))
		if gone := errors.Is(err, tarry.ErrNotFound); !gone && info.State != tarry.Dead || gone && m.acked == 0 && !m.cancelled {
			s.t.Errorf("message %s, acked %d times, cancelled %t, became %s, %v", id, m.acked, m.cancelled, info.State, err)
		}
	}
	if err := s.c.Close(); err != nil {
		s.t.Error(err)
	}
}

// live is how many messages have not ended.
func (s *sim) live() (n int) {
	for q := range s.bound {
		info, err := s.c.Queue(s.t.Context(), q)
		if err != nil {
			s.t.Error(err)
		}
		n += int(info.Scheduled + info.Ready + info.Leased)
	}
	return n
}

// disturb has something happen.
func (s *sim) disturb() {
	ctx, q := s.t.Context(), s.queue()
	switch s.below(8) {
	case 0:
		if err := s.c.Pause(ctx, q, time.Millisecond+s.upTo(100*time.Millisecond)); err != nil {
			s.t.Error(err)
		}
	case 1:
		s.mu.Lock()
		var some []tarry.ID
		for id, m := range s.msgs {
			if m.acked == 0 && !m.cancelled && len(some) < 10 {
				some = append(some, id)
			}
		}
		s.mu.Unlock()
		for _, id := range some {
			m := s.msgs[id]
			if err := s.c.Cancel(ctx, tarry.ByID(id).Of(m.queue)); err == nil {
				s.mu.Lock()
				m.cancelled = true
				s.mu.Unlock()
			}
		}
	default:
		n := 1 + s.below(50)
		for range n {
			opts := []tarry.PushOption{tarry.Backoff(time.Millisecond, 300*time.Millisecond)}
			if s.one(2) {
				opts = append(opts, tarry.In(s.upTo(300*time.Millisecond)))
			}
			if s.rough {
				opts = append(opts, tarry.TTR(time.Millisecond+s.upTo(40*time.Millisecond)))
			}
			s.mu.Lock() // before a handler can see it
			p, err := s.c.Push(ctx, q, []byte("x"), opts...)
			if err != nil {
				s.t.Error(err)
			}
			s.msgs[p.ID] = &simMessage{queue: q, begun: make(map[uint32]bool)}
			s.mu.Unlock()
		}
	}
}

// work starts a worker; stop drains it and looks at what it leaves.
func (s *sim) work(name string) (stop func()) {
	slots := 1 + s.below(8)
	cfg := &tarry.WorkerConfig{
		Concurrency: slots, DrainTimeout: s.upTo(time.Second) - 100*time.Millisecond,
		Middleware: []tarry.Middleware{s.inTime},
	}
	if s.one(4) {
		cfg.Observer = func(tarry.Event) { time.Sleep(100 * time.Microsecond) }
	}
	w := tarry.NewWorker(s.c, cfg)
	for q, bound := range s.bound {
		var opts []tarry.HandleOption
		if bound > 0 {
			opts = append(opts, tarry.Concurrency(bound))
		}
		if s.one(4) {
			opts = append(opts, tarry.HandlerTimeout(50*time.Millisecond))
		}
		tarry.Handle(w, tarry.NewTopic[string](q), func(ctx context.Context, m *tarry.Message[string]) error {
			here := name + q
			s.mu.Lock()
			s.now[name]++
			s.now[here]++
			if s.now[name] > slots || bound > 0 && s.now[here] > bound {
				s.t.Errorf("%d handlers run in %s, %d of them of %s", s.now[name], name, s.now[here], q)
			}
			s.mu.Unlock()
			defer func() {
				s.mu.Lock()
				s.now[name]--
				s.now[here]--
				s.mu.Unlock()
			}()
			return s.handle(ctx, m)
		}, opts...)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		start := time.Now()
		err := <-done
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !(s.rough && errors.Is(err, tarry.ErrUnavailable)) {
			s.t.Errorf("Run: %v", err)
		}
		if took := time.Since(start); took > 20*time.Second {
			s.t.Errorf("the drain took %s", took)
		}
		synctest.Wait()
		if h := tarry.Holds(w); h != (work.Holds{Looks: h.Looks}) {
			s.t.Errorf("after the drain %s holds %+v", name, h)
		}
	}
}

// inTime looks whether the lease lasts when anything of the user's begins.
func (s *sim) inTime(next tarry.HandlerFunc) tarry.HandlerFunc {
	return func(ctx context.Context, m *tarry.Message[[]byte]) error {
		if !time.Now().Before(m.Deadline()) {
			s.t.Errorf("message %s began after its lease", m.ID)
		}
		return next(ctx, m)
	}
}

// handle is the handler: it looks whether it may begin, and does something.
func (s *sim) handle(ctx context.Context, msg *tarry.Message[string]) error {
	s.mu.Lock()
	m := s.msgs[msg.ID]
	switch {
	case m.cancelled:
		s.t.Errorf("message %s began after it was cancelled", msg.ID)
	case m.acked > 0 && !s.rough:
		s.t.Errorf("message %s began after it was handled", msg.ID)
	case m.running && !s.rough:
		s.t.Errorf("message %s began while it runs", msg.ID)
	case !s.rough && msg.Attempt != m.counted+1:
		s.t.Errorf("message %s is at attempt %d; want %d", msg.ID, msg.Attempt, m.counted+1)
	}
	m.running = true
	s.mu.Unlock()
	end := func(counted, acked int) {
		s.mu.Lock()
		m.running = false
		m.counted += uint32(counted)
		m.acked += acked
		s.mu.Unlock()
	}
	if s.calm {
		end(0, 1)
		return nil
	}
	switch s.below(20) {
	case 0:
		end(1, 0)
		return errors.New("failed")
	case 1:
		end(1, 0)
		panic("panicked")
	case 2:
		defer func() { end(1, 0) }()
		runtime.Goexit()
	case 3:
		defer func() {
			end(1, 0)
			panic("on the way out")
		}()
		runtime.Goexit()
	case 4:
		end(0, 0)
		return tarry.Snooze(s.upTo(100 * time.Millisecond))
	case 5:
		select {
		case <-ctx.Done():
		case <-time.After(s.upTo(2 * time.Second)):
		}
		switch {
		case ctx.Err() == context.DeadlineExceeded:
			end(1, 0)
			return ctx.Err()
		case ctx.Err() != nil:
			end(0, 0)
			return ctx.Err()
		}
	case 6, 7, 8, 9:
		time.Sleep(s.upTo(20 * time.Millisecond))
	}
	end(0, 1)
	return nil
}

// check looks at the engine when no worker runs.
func (s *sim) check() {
	if s.rough {
		time.Sleep(time.Minute + time.Second) // what was lost lapses, at the latest so long after its lease
	}
	for q := range s.bound {
		if info, err := s.c.Queue(s.t.Context(), q); err != nil || info.Leased != 0 {
			s.t.Errorf("queue %s is left with %d leased, %v", q, info.Leased, err)
		}
	}
	if s.rough {
		return
	}
	for id, m := range s.msgs {
		info, err := s.c.Get(s.t.Context(), tarry.ByID(id).Of(m.queue))
		gone := errors.Is(err, tarry.ErrNotFound)
		switch {
		case m.running:
			s.t.Errorf("message %s runs", id)
		case gone != (m.acked == 1 || m.cancelled) || m.acked > 1:
			s.t.Errorf("message %s is gone: %t, was acked %d times, cancelled: %t", id, gone, m.acked, m.cancelled)
		case !gone && info.Attempt != m.counted:
			s.t.Errorf("message %s is %s at attempt %d; want %d", id, info.State, info.Attempt, m.counted)
		}
	}
}
