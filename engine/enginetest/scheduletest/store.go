package scheduletest

import (
	"context"
	"sync"

	"github.com/tarryhq/tarry/engine"
)

// A Store is what outlives the processes that use it, one after the other.
type Store interface {
	// Open opens the store for a process.
	Open() (engine.Engine, error)
	// Kill ends the process, so that nothing that it does counts any more.
	Kill()
	// KillIn ends it at a step to come, 1 for the next.
	KillIn(steps int)
	// Killed reports whether the process has ended.
	Killed() bool
	// Called is told before and after each call of the engine.
	Called()
}

// Memory is a store that loses nothing. Its steps are the calls of the engine: a process ends
// before a call or after it, without the answer.
type Memory struct {
	Engine engine.Engine
	Died   func() // is called when a process ends; nil: nothing is

	mu     sync.Mutex
	steps  int
	killed bool
}

// Open implements Store.
func (m *Memory) Open() (engine.Engine, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps, m.killed = 0, false
	return m.Engine, nil
}

// Kill implements Store.
func (m *Memory) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed = true
}

// KillIn implements Store.
func (m *Memory) KillIn(steps int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps = steps
}

// Killed implements Store.
func (m *Memory) Killed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.killed
}

// Called implements Store.
func (m *Memory) Called() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steps--; m.steps == 0 {
		m.killed = true
		if m.Died != nil {
			m.Died()
		}
	}
}

// process is an engine as a process has it that may be killed.
type process struct {
	engine.Engine
	store Store
}

// Open opens a store for a process that ends when the store says so: all its calls then fail.
func Open(s Store) (engine.Engine, error) {
	e, err := s.Open()
	return &process{e, s}, err
}

// Close implements engine.Engine. The store is there for the next process.
func (p *process) Close() error { return nil }

// call makes a call, unless the process ends before it, or before it has the answer.
func call[T any](p *process, do func() (T, error)) (got T, err error) {
	var none T
	p.store.Called()
	if p.store.Killed() {
		return none, engine.ErrClosed
	}
	got, err = do()
	if !p.store.Killed() {
		p.store.Called()
	}
	if p.store.Killed() {
		return none, engine.ErrClosed
	}
	return got, err
}

// Push implements engine.Engine.
func (p *process) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	return call(p, func() ([]engine.PushResult, error) { return p.Engine.Push(ctx, msgs) })
}

// Lease implements engine.Engine.
func (p *process) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	return call(p, func() (engine.Grant, error) { return p.Engine.Lease(ctx, wants) })
}

// Settle implements engine.Engine.
func (p *process) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	return call(p, func() ([]engine.Settled, error) { return p.Engine.Settle(ctx, s) })
}

// Get implements engine.Engine.
func (p *process) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	return call(p, func() (engine.Info, error) { return p.Engine.Get(ctx, ref) })
}

// Claim implements engine.Claimer.
func (p *process) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	return call(p, func() (engine.Lease, error) { return p.Engine.(engine.Claimer).Claim(ctx, ref, want) })
}

// List implements engine.Lister.
func (p *process) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	return call(p, func() (engine.Page, error) { return p.Engine.(engine.Lister).List(ctx, q) })
}
