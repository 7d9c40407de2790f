package diskengine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// machine is a simulated disk, and the engines that are opened on it one after another.
type machine struct {
	clock *enginetest.Clock
	tune  diskengine.Tune
	retry time.Duration

	mu     sync.Mutex
	rng    *rand.Rand
	disk   *disktest.Disk
	left   int // calls of the disk until the fault strikes; 0: it does not
	fault  error
	struck bool
	leave  context.CancelFunc // of the call under way

	// The power may go before each every-th call that changes the disk; 0: it does not.
	every, changes int
	losses         []*disktest.Disk

	exact bool // nothing is done by itself, and all is drawn by the seed
	tape  *tape

	dir       string // ""; data
	opened    map[string]int
	killed    bool        // the disk was left by a process that was killed, and did what it was asked to
	still     atomic.Bool // nothing is flushed or merged by itself
	inChore   sync.Mutex
	meanwhile func(where string) // while a chore is under way
}

// errPower is the fault that takes the power away, errLeft the one by which the caller leaves.
var (
	errPower = errors.New("the power goes")
	errLeft  = errors.New("the caller leaves")
)

func (m *machine) open(t *testing.T) *diskengine.Engine {
	t.Helper()
	e, err := m.tryOpen()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (m *machine) tryOpen() (*diskengine.Engine, error) {
	m.disk.Hook(m.hook)
	tune := m.tune
	tune.Between = m.between
	if m.exact {
		tune.Still, tune.Random = true, m.random
	}
	return diskengine.OpenOn(m.disk, cmp.Or(m.dir, "data"), &diskengine.Config{Now: m.clock.Now, Logger: quiet, RetryFor: m.retry, MinFreeBytes: -1}, tune)
}

// random fills b.
func (m *machine) random(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b {
		b[i] = byte(m.rng.Uint32())
	}
}

// hook lets faults happen, and keeps what a loss of power would leave.
func (m *machine) hook(c disktest.Call) error {
	if c.Op == disktest.Read && m.still.Load() && strings.HasSuffix(c.Name, ".run") {
		m.between("read")
	}
	m.tape.note(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.opened == nil {
		m.opened = map[string]int{}
	}
	switch c.Op {
	case disktest.Open, disktest.Create:
		m.opened[c.Name]++
	case disktest.Close:
		m.opened[c.Name]--
	}
	if m.left > 0 && (m.fault != errPower || c.Changes()) {
		if m.left--; m.left == 0 {
			m.struck = true
			if m.fault == errPower {
				m.disk.Halt()
				return disktest.ErrOff
			}
			if m.fault == errLeft {
				if m.leave != nil && !m.exact { // which calls the disk still gets then is chance
					m.leave()
				}
				return nil
			}
			if short := (*disktest.Short)(nil); errors.As(m.fault, &short) {
				return &disktest.Short{Bytes: m.rng.IntN(1 + c.Len), Err: short.Err}
			}
			return m.fault
		}
	}
	if m.every > 0 && c.Changes() {
		if m.changes++; m.changes%m.every == 0 {
			m.losses = append(m.losses, m.disk.Crash(disktest.Seeded(m.rng.Uint64())))
		}
	}
	return nil
}

// between plays on in the midst of a chore, and else lets others in now and then.
func (m *machine) between(where string) {
	if m.inChore.TryLock() {
		defer m.inChore.Unlock()
		if m.meanwhile != nil {
			m.meanwhile(where)
			return
		}
	}
	if m.exact {
		return
	}
	for range rand.IntN(8) {
		runtime.Gosched()
	}
}

// during is a chore with meanwhile played in the midst of it.
func (m *machine) during(meanwhile func(where string), do func() error) error {
	m.inChore.Lock()
	m.meanwhile = meanwhile
	m.inChore.Unlock()
	defer func() {
		m.inChore.Lock()
		defer m.inChore.Unlock()
		m.meanwhile = nil
	}()
	return do()
}

// after takes what an engine that came to an end left on the disk: without power, or of a
// process that was killed.
func (m *machine) after(power bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left, m.struck, m.opened, m.killed = 0, false, nil, false
	if power {
		m.disk = m.disk.Crash(disktest.Seeded(m.rng.Uint64()))
	} else {
		m.disk = m.disk.Kill()
	}
}

// mostReady is more than are ever ready in a queue of a random history: among so many the order is exact.
const mostReady = 200

// machines are those of the engines of a harness.
type machines struct {
	clock   *enginetest.Clock
	every   int
	seed    uint64
	free    bool     // what is done in the background is, whatever the seed
	tape    *tape    // of the machine that was made last
	engines sync.Map // of each engine, its machine: engines are opened while others are looked at
}

// of returns the machine of an engine.
func (ms *machines) of(e engine.Engine) *machine {
	m, _ := ms.engines.Load(e)
	return m.(*machine)
}

func (ms *machines) machine() *machine {
	rng := rand.New(rand.NewPCG(ms.seed, 7))
	cfg := disktest.Config{Stale: rng.IntN(2) == 0, Forgets: rng.IntN(2) == 0, Dropped: disktest.Seeded(rng.Uint64())}
	if rng.IntN(4) == 0 {
		cfg.Sector = 4096
	}
	ms.tape = newTape()
	ahead, window := -1, int64(0) // a push in the midst of a flush would wait for it, and one is told of a flush that failed
	if ms.free {
		ahead, window = 0, []int64{64 << 10, 0}[rng.IntN(2)]
	}
	return &machine{
		clock: ms.clock, rng: rng, disk: disktest.New(&cfg), every: ms.every, retry: -1, exact: ms.exact(), tape: ms.tape,
		tune: diskengine.Tune{
			SegmentBytes:  []int64{8 << 10, 16 << 10, 64 << 10}[rng.IntN(3)],
			SpanBytes:     []int64{1 << 10, 4 << 10, 16 << 10, 1 << 20}[rng.IntN(4)],
			BlockBytes:    []int{512, 1024, 4096}[rng.IntN(3)],
			MergeTables:   2 + rng.IntN(4),
			GroupWords:    []int{1, 2, 0}[rng.IntN(3)],
			NearBytes:     []int64{1, 2 << 10, 0}[rng.IntN(3)],
			Ready:         []int{mostReady, 0}[rng.IntN(2)],
			OnHeap:        rng.IntN(2) == 0,
			AheadSpans:    ahead,
			MemtableBytes: window,
			HeadBytes:     []int{0, 64}[ms.seed/27%2],
		},
	}
}

// exact reports whether the history of the seed is the same each time it is played: nothing is done
// by itself then. In the others the background goes on as it comes.
func (ms *machines) exact() bool { return !ms.free && ms.seed/9%3 != 1 }

func (ms *machines) open(t *testing.T, m *machine) engine.Engine {
	e := m.open(t)
	ms.engines.Store(e, m)
	return e
}

// crash ends an engine as a loss of power or a kill does.
func (ms *machines) crash(t *testing.T, e engine.Engine) engine.Engine {
	m := ms.of(e)
	m.mu.Lock()
	power := m.rng.IntN(3) > 0
	m.mu.Unlock()
	left := m.disk.Kill()
	m.disk.Halt()
	_ = e.Close() // as far as it comes
	if m.after(power); !power {
		m.disk, m.killed = left, true
	}
	return ms.open(t, m)
}

func (ms *machines) reopen(t *testing.T, e engine.Engine) engine.Engine {
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	m := ms.of(e)
	if n := m.disk.Handles(); n > 0 {
		maps.DeleteFunc(m.opened, func(_ string, n int) bool { return n == 0 })
		t.Errorf("%d files are open after Close: %v", n, m.opened)
	}
	return ms.open(t, m)
}

// fault is one that strikes at a call of the disk.
func (ms *machines) fault(name string, err error) enginetest.Fault {
	return enginetest.Fault{
		Name: name, Anywhere: true, Most: 30,
		Arm: func(e engine.Engine, n int) {
			m := ms.of(e)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.left, m.fault, m.struck = n, err, false
		},
		Disarm: func(e engine.Engine) bool {
			m := ms.of(e)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.left = 0
			return m.struck
		},
		Reopen: func(t *testing.T, e engine.Engine) engine.Engine {
			m := ms.of(e)
			m.mu.Lock()
			off := m.struck && err == errPower
			m.struck = false
			power := off || m.rng.IntN(2) == 0
			m.mu.Unlock()
			_, err := e.Get(t.Context(), engine.Ref{Queue: "stopped", Key: "k"})
			switch goesOn := errors.Is(err, engine.ErrNotFound); {
			case goesOn && !off:
				return e
			case !goesOn:
				stopped(t, e)
			}
			_ = e.Close() // may say why it stopped
			m.after(power)
			return ms.open(t, m)
		},
	}
}

// leaving is the fault by which a caller leaves in the midst of his call.
func (ms *machines) leaving() enginetest.Fault {
	f := ms.fault("the caller leaves", errLeft)
	f.Caller = func(e engine.Engine, ctx context.Context) context.Context {
		m := ms.of(e)
		m.mu.Lock()
		defer m.mu.Unlock()
		ctx, m.leave = context.WithCancel(ctx)
		return ctx
	}
	disarm := f.Disarm
	f.Disarm = func(e engine.Engine) bool {
		e.(*diskengine.Engine).AwaitLeft() // on a busy machine leases are still being given back
		return disarm(e)
	}
	return f
}

// scarcity is the fault by which there is little space while a step is played.
func (ms *machines) scarcity() enginetest.Fault {
	f := ms.fault("little space", nil)
	f.Arm = func(e engine.Engine, n int) {
		d := ms.of(e).disk
		d.SetSpace(d.Used() + int64(n-1)<<9)
	}
	f.Disarm = func(e engine.Engine) bool {
		ms.of(e).disk.SetSpace(0)
		return true
	}
	return f
}

// backUp takes a backup, and compares what is restored from it with what there was, unless that
// has changed meanwhile or a fault may strike. A message that was pushed meanwhile may be in the
// backup and gone again.
func (ms *machines) backUp(e *diskengine.Engine, ctx context.Context) error {
	m := ms.of(e)
	m.mu.Lock()
	quiet := m.left == 0 && !m.struck
	m.mu.Unlock()
	if !quiet {
		_, err := e.Backup(ctx, "backup")
		return err
	}
	next, began := e.NextID(), m.clock.Now()
	was, waits, err := present(ctx, e)
	if err != nil {
		return err
	}
	if _, err := e.Backup(ctx, "backup"); err != nil {
		return err
	}
	is, _, err := present(ctx, e)
	if err != nil || !maps.Equal(was, is) {
		return err
	}
	other := &machine{clock: m.clock, tune: m.tune, disk: m.disk.Kill(), retry: -1, exact: m.exact, rng: rand.New(rand.NewPCG(ms.seed, 9)), tape: newTape(), dir: "restored"}
	if _, err := diskengine.RestoreOn(ctx, other.disk, "backup", other.dir); err != nil {
		return err
	}
	again, err := other.tryOpen()
	if err != nil {
		return err
	}
	has, _, err := present(ctx, again)
	for x, id := range has {
		if id < next && was[x] == 0 {
			err = errors.Join(err, fmt.Errorf("the backup holds %s, which was not there", x))
		}
	}
	for x := range waits {
		if has[x] == 0 && m.clock.Now().Equal(began) { // else it may have expired
			err = errors.Join(err, fmt.Errorf("the backup lacks %s", x))
		}
	}
	return errors.Join(err, again.Sound(), again.Close())
}

// present returns the ids of the messages that are there, and of those among them that are
// scheduled or ready.
func present(ctx context.Context, e *diskengine.Engine) (all, waits map[string]engine.ID, err error) {
	all, waits = map[string]engine.ID{}, map[string]engine.ID{}
	queues, _, err := e.Queues(ctx, "", 100)
	for _, q := range queues {
		for s := engine.Scheduled; s <= engine.Dead && err == nil; s++ {
			for l := (engine.ListQuery{Queue: q.Queue, State: s, Limit: 1000}); ; {
				var page engine.Page
				if page, err = e.List(ctx, l); err != nil {
					break
				}
				for _, i := range page.Messages {
					x := fmt.Sprint(i.Queue, " ", i.ID, " ", i.Key)
					if all[x] = i.ID; s == engine.Scheduled || s == engine.Ready {
						waits[x] = i.ID
					}
				}
				if l.After = page.Next; l.After == "" {
					break
				}
			}
		}
	}
	return all, waits, err
}

// losses are what was left at each instant at which the power might have gone.
func (ms *machines) losses(e engine.Engine) (all []func(t *testing.T) engine.Engine) {
	m := ms.of(e)
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, left := range m.losses {
		all = append(all, func(t *testing.T) engine.Engine {
			return ms.open(t, &machine{clock: m.clock, tune: m.tune, retry: m.retry, rng: rand.New(rand.NewPCG(ms.seed, 8)), disk: left, exact: m.exact, tape: newTape()})
		})
	}
	m.losses = nil
	return all
}

// stopped fails the test unless each call of an engine that has stopped says so.
func stopped(t *testing.T, e engine.Engine) {
	t.Helper()
	ctx := t.Context()
	whole := e.(engine.Whole)
	ref := engine.Ref{Queue: "stopped", Key: "k"}
	for name, call := range map[string]func() error{
		"push":       func() error { _, err := e.Push(ctx, []engine.Message{{Queue: "stopped", Key: "k"}}); return err },
		"lease":      func() error { _, err := e.Lease(ctx, []engine.Want{{Queue: "stopped", Max: 1}}); return err },
		"cancel":     func() error { _, err := e.Cancel(ctx, []engine.Ref{ref}); return err },
		"reschedule": func() error { _, err := e.Reschedule(ctx, ref, engine.When{}); return err },
		"get":        func() error { _, err := e.Get(ctx, ref); return err },
		"claim":      func() error { _, err := whole.Claim(ctx, ref, engine.Want{}); return err },
		"peek":       func() error { _, err := e.(engine.Peeker).Peek(ctx, []string{"stopped"}); return err },
		"find":       func() error { _, err := e.(engine.Finder).Find(ctx, []engine.ID{1}); return err },
		"count":      func() error { _, err := whole.Queue(ctx, "stopped"); return err },
		"purge":      func() error { _, err := whole.Purge(ctx, "stopped", 0); return err },
		"pause":      func() error { return whole.Pause(ctx, "stopped", 0) },
	} {
		if err := call(); !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("%s after the store stopped: %v", name, err)
		}
	}
}
