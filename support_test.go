package tarry_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// bubble runs f in a synctest bubble with a client of an empty engine in memory.
func bubble(t *testing.T, f func(t *testing.T, c *tarry.Client)) {
	t.Helper()
	bubbleOn(t, memengine.New(nil), f)
}

func bubbleOn(t *testing.T, eng engine.Engine, f func(t *testing.T, c *tarry.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := tarry.New(eng, nil)
		f(t, c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// pass lets time pass in a bubble, and what falls into it happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// list gathers what handlers see.
type list[T any] struct {
	mu    sync.Mutex
	items []T
}

// add appends x and returns how many there are now.
func (l *list[T]) add(x T) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, x)
	return len(l.items)
}

func (l *list[T]) all() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.items)
}

func (l *list[T]) len() int { return len(l.all()) }

// logged keeps what is logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// stage is an engine whose calls a test can count, hold up and fail.
type stage struct {
	*memengine.Engine
	caps   func(*engine.Capabilities)
	push   func(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error)
	lease  func(ctx context.Context, wants []engine.Want) (engine.Grant, error)
	settle func(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error)
	watch  func(fn func(queue string)) (stop func())
}

func newStage() *stage {
	s := &stage{Engine: memengine.New(nil)}
	s.push, s.lease, s.settle, s.watch = s.Engine.Push, s.Engine.Lease, s.Engine.Settle, s.Engine.Watch
	return s
}

func (s *stage) Capabilities() engine.Capabilities {
	caps := s.Engine.Capabilities()
	caps.Prompt = false // a test may hold calls up
	if s.caps != nil {
		s.caps(&caps)
	}
	return caps
}

func (s *stage) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	return s.push(ctx, msgs)
}

func (s *stage) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	return s.lease(ctx, wants)
}

func (s *stage) Settle(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
	return s.settle(ctx, in)
}

func (s *stage) Watch(fn func(queue string)) func() { return s.watch(fn) }
