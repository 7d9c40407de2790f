package tarrytest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/tarrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type Ride struct {
	ID    string `json:"id"`
	Stars int    `json:"stars,omitempty"`
}

var (
	rides  = tarry.NewTopic[Ride]("rides", tarry.MaxAttempts(9))
	thanks = tarry.NewTopic[string]("thanks")
)

// push pushes, which must succeed.
func push[T any](t testing.TB, q *tarrytest.Client, topic *tarry.Topic[T], v T, opts ...tarry.PushOption) tarry.Pushed {
	t.Helper()
	p, err := topic.Push(t.Context(), q.Client, v, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// worker returns a worker that handles rides.
func worker(q *tarrytest.Client, handle func(context.Context, *tarry.Message[Ride]) error) *tarry.Worker {
	w := tarry.NewWorker(q.Client, nil)
	tarry.Handle(w, rides, handle)
	return w
}

// handled counts calls of its handler.
type handled struct {
	mu  sync.Mutex
	ids []string
}

func (h *handled) handle(_ context.Context, m *tarry.Message[Ride]) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids = append(h.ids, m.Body.ID)
	return nil
}

func (h *handled) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.ids, " ")
}

// fakeTB is a test that may fail.
type fakeTB struct {
	testing.TB
	mu   sync.Mutex
	said strings.Builder
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(&f.said, format+"\n", args...)
}

func (f *fakeTB) Logf(format string, args ...any) { f.Errorf(format, args...) }

func (f *fakeTB) Fatal(args ...any) {
	f.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// failure runs what must fail, and returns how.
func failure(t *testing.T, do func(t testing.TB)) string {
	t.Helper()
	f := &fakeTB{TB: t}
	var running sync.WaitGroup
	running.Go(func() { do(f) })
	running.Wait()
	if f.said.Len() == 0 {
		t.Error("it has not failed")
	}
	return f.said.String()
}
