package timer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/timer"
)

// job is a timer of a random history, and what became of it.
type job struct {
	handle    timer.Handle
	due       time.Time
	takes     time.Duration // how long its handler takes
	ends      byte          // how its handler ends
	began     int
	cancelled bool
}

// crew makes the calls that a tape says on a Runner, inside a bubble. Whenever
// all is quiet, what the Runner says of itself has to agree with the jobs.
type crew struct {
	runner  *timer.Runner[int]
	core    timer.Core[int]
	workers int
	closed  bool
	grain   grain
	step    atomic.Int64 // how far the clock is set forward

	mu      sync.Mutex
	jobs    []*job
	busy    int
	late    timer.RunnerStats // what the lateness should be
	failing sync.Mutex
	failure error
	tape    []byte
}

func (c *crew) now() time.Time { return time.Now().Add(time.Duration(c.step.Load())) }

func (c *crew) byte() int {
	if len(c.tape) == 0 {
		return 0
	}
	b := c.tape[0]
	c.tape = c.tape[1:]
	return int(b)
}

func (c *crew) fail(format string, args ...any) {
	c.failing.Lock()
	defer c.failing.Unlock()
	if c.failure == nil {
		c.failure = fmt.Errorf(format, args...)
	}
}

func (c *crew) handle(t timer.Timer[int]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j, now := c.jobs[t.Value], c.now()
	j.began++
	late := now.Sub(t.Due)
	c.late.Fired++
	c.late.LateSum += late
	c.late.LateMax = max(c.late.LateMax, late)
	switch {
	case j.began > 1:
		c.fail("job %d began %d times", t.Value, j.began)
	case j.cancelled:
		c.fail("job %d began after Cancel", t.Value)
	case j.due.After(now):
		c.fail("job %d began %v early", t.Value, j.due.Sub(now))
	case t.Handle != j.handle || !t.Due.Equal(c.grain.up(j.due, c.grain.unit)):
		c.fail("job %d began as %v, it is %v", t.Value, t, j)
	}
	c.busy++
	c.mu.Unlock()
	if _, ok := c.runner.Cancel(t.Handle); ok {
		c.fail("job %d cancelled itself", t.Value)
	}
	if c.runner.Reset(t.Handle, now) {
		c.fail("job %d reset itself", t.Value)
	}
	time.Sleep(j.takes)
	c.mu.Lock()
	c.busy--
	switch j.ends % 16 {
	case 0:
		panic("oh")
	case 1:
		runtime.Goexit()
	}
}

func (c *crew) delay() time.Duration {
	return time.Duration(c.byte()-16) << (c.byte() % 26)
}

func (c *crew) act() {
	op, n := c.byte(), len(c.jobs)
	switch {
	case op < 100:
		due, count := c.now().Add(c.delay()), 1
		if op < 50 {
			count = c.byte()
		}
		for range count {
			takes := time.Duration(0)
			if b := c.byte(); b%8 == 0 {
				takes = time.Duration(b) << (c.byte() % 26)
			}
			c.mu.Lock() // the handler looks the job up
			j := &job{due: due, takes: takes, ends: byte(c.byte())}
			c.jobs = append(c.jobs, j)
			j.handle = c.runner.Schedule(due, len(c.jobs)-1)
			c.mu.Unlock()
		}
	case op < 180 && n > 0:
		// Newer ones more often: they live.
		at := n - 1 - c.byte()*c.byte()*n>>16
		j := c.jobs[at]
		c.mu.Lock()
		live := j.began == 0 && !j.cancelled
		c.mu.Unlock()
		if op < 140 {
			v, ok := c.runner.Cancel(j.handle)
			if ok != live || ok && v != at {
				c.fail("cancel of job %d: %d, %t; it is %v", at, v, ok, j)
			}
			j.cancelled = j.cancelled || ok
			return
		}
		due := c.now().Add(c.delay())
		c.mu.Lock()
		if live {
			j.due = due
		}
		if c.runner.Reset(j.handle, due) != live {
			c.fail("reset of job %d, which is %v", at, j)
		}
		c.mu.Unlock()
	case op >= 240: // noticed within a second
		c.step.Add(int64(c.delay()) * int64(1+op%2*1000))
		time.Sleep(time.Second)
	case op >= 180:
		time.Sleep(max(0, c.delay()))
	}
}

// agree compares the Runner with the jobs while all goroutines wait.
func (c *crew) agree() {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.runner.Stats()
	floor := c.grain.floor(c.now())
	pending, due := 0, 0
	for _, j := range c.jobs {
		if j.began == 0 && !j.cancelled {
			pending++
			if !c.grain.up(j.due, c.grain.unit).After(floor) {
				due++
			}
		}
	}
	if s.Pending != pending {
		c.fail("%d pending, want %d", s.Pending, pending)
	}
	if due > 0 && c.busy < c.workers && !c.closed {
		c.fail("%d wait with %d of %d workers busy", due, c.busy, c.workers)
	}
	if s.Fired != c.late.Fired || s.LateSum != c.late.LateSum || s.LateMax != c.late.LateMax {
		c.fail("stats %+v, want %+v", s, c.late)
	}
	if s.Running < c.busy || s.Running > c.workers {
		c.fail("%d run, %d are busy, at most %d", s.Running, c.busy, c.workers)
	}
}

func playRunner(t *testing.T, tape []byte) {
	synctest.Test(t, func(t *testing.T) {
		c := &crew{tape: tape}
		now := time.Now()
		tick := []time.Duration{time.Millisecond, time.Microsecond, time.Second, 7 * time.Nanosecond}[c.byte()%4]
		c.grain = newGrain(tick)
		c.grain.base = now.Truncate(tick)
		switch c.byte() % 4 {
		case 0:
			tick = max(tick, time.Millisecond) // a turn of the ring is a wake-up
			c.grain = grain{now.Truncate(tick), time.Microsecond, tick}
			c.core = timer.NewRing[int](64, tick, now)
		case 1:
			c.core, c.grain = timer.NewHeap[int](now), grain{now, 1, 1}
		case 2:
			w := timer.NewWheel[int](tick, now)
			w.Tighten(2, 2, 3, 2)
			c.core = w
		default:
			c.core = timer.NewWheel[int](tick, now)
		}
		core := c.core
		plain := c.byte()%8 == 0
		if plain { // a Core of another package
			core = struct{ timer.Core[int] }{core}
		}
		c.workers = 1 + c.byte()%5
		c.runner = timer.NewRunner(core, c.handle, &timer.RunnerConfig{Workers: c.workers, OnPanic: func(any, []byte) {}, Now: c.now})
		for len(c.tape) > 0 && c.failure == nil {
			c.act()
			c.agree()
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = c.runner.Close(ended)
		c.mu.Lock()
		began := c.late.Fired
		c.closed = true
		c.mu.Unlock()
		if err := c.runner.Close(t.Context()); err != nil {
			c.fail("close: %w", err)
		}
		if err := c.runner.Close(ended); err != nil {
			c.fail("close of what is closed: %w", err)
		}
		c.agree()
		if c.late.Fired != began {
			c.fail("%d began after Close", c.late.Fired-began)
		}
		// What was not begun is in the core, under its handle.
		for _, j := range c.jobs {
			live := j.began == 0 && !j.cancelled
			if c.runner.Reset(j.handle, j.due) {
				c.fail("reset after Close")
			}
			if _, ok := c.runner.Due(j.handle); ok != live {
				c.fail("after Close %v has a due: %t", j, ok)
			}
			if _, ok := c.core.Due(j.handle); ok != live {
				c.fail("after Close %v is in the core: %t", j, ok)
			}
		}
		for due, v := range c.core.Drain() {
			if j := c.jobs[v]; j.began > 0 || j.cancelled || !due.Equal(c.grain.up(j.due, c.grain.unit)) {
				c.fail("drained %d with due %v, it is %v", v, due, j)
			}
			c.jobs[v].began++
		}
		for v, j := range c.jobs {
			if j.began == 0 && !j.cancelled {
				c.fail("job %d was lost: %v", v, j)
			}
		}
		if c.failure != nil {
			t.Error(c.failure)
		}
	})
}

func TestRunnerAgainstModel(t *testing.T) { playTapes(t, 400, 300, playRunner) }

func FuzzRunner(f *testing.F) { fuzzTapes(f, playRunner) }

// playTapes plays random tapes.
func playTapes(t *testing.T, tapes, length int, play func(*testing.T, []byte)) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for n := 0; n < tapes && !t.Failed(); n++ {
		tape := randomTape(random, 1+random.IntN(length))
		if play(t, tape); t.Failed() {
			t.Logf("seed %d, tape %d: %#v", seed, n, tape)
		}
	}
}

func randomTape(random *rand.Rand, length int) []byte {
	tape := make([]byte, length)
	for i := range tape {
		tape[i] = byte(random.Uint32())
	}
	return tape
}

// fuzzTapes lets the fuzzer write tapes.
func fuzzTapes(f *testing.F, play func(*testing.T, []byte)) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		f.Add(randomTape(random, 300))
	}
	f.Fuzz(func(t *testing.T, tape []byte) {
		if len(tape) <= 2000 {
			play(t, tape)
		}
	})
}
