package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	_ "github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// patience bounds every wait.
const patience = time.Minute

// spring is a source of a test, opened as spring://NAME. What is put into it comes out, and
// comes again after a failure unless it is settled.
type spring struct {
	mu      sync.Mutex
	stock   []*Message // not settled
	begun   int        // calls of Receive
	closed  int
	refused []string
	changed chan struct{} // closed and renewed when anything above changes
	broken  chan error    // ends a Receive
}

var springs sync.Map // *spring by name

func init() {
	Register("spring", func(u *url.URL, _ *Options) (Source, error) {
		s, ok := springs.Load(u.Host)
		if !ok {
			return nil, invalid("no spring is named %q", u.Host)
		}
		return s.(*spring), nil
	})
}

func newSpring(t *testing.T, name string) (*spring, string) {
	s := &spring{changed: make(chan struct{}), broken: make(chan error)}
	springs.Store(name, s)
	t.Cleanup(func() { springs.Delete(name) })
	return s, "spring://" + name
}

func (s *spring) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *spring) put(ms ...*Message) { s.change(func() { s.stock = append(s.stock, ms...) }) }

func (s *spring) Receive(ctx context.Context, to *Sink) error {
	given := make(map[*Message]bool)
	s.change(func() { s.begun++ })
	to.Report(nil)
	for {
		s.mu.Lock()
		changed, next := s.changed, []*Message(nil)
		for _, m := range s.stock {
			if !given[m] {
				next = append(next, m)
			}
		}
		s.mu.Unlock()
		for _, m := range next {
			given[m] = true
			handed := *m
			handed.Receipt = m
			to.Take(&handed)
			m.Redelivered = true
		}
		select {
		case <-changed:
		case err := <-s.broken:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *spring) Connect(context.Context) (Conn, string, error) { return s, "a spring", nil }

func (s *spring) Close() { s.change(func() { s.closed++ }) }

func (s *spring) Ack(ms []*Message) error {
	s.change(func() {
		for _, m := range ms {
			s.stock = slices.DeleteFunc(s.stock, func(o *Message) bool { return o == m.Receipt })
		}
	})
	return nil
}

func (s *spring) SetAside(_ *Message, reason string) error {
	s.change(func() { s.refused = append(s.refused, reason) })
	return nil
}

// await waits until a condition holds.
func (s *spring) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.After(patience); ; {
		s.mu.Lock()
		ok, changed := holds(), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-end:
			t.Fatalf("it is not so: %s", what)
		}
	}
}

func (s *spring) awaitEmpty(t *testing.T) {
	t.Helper()
	s.await(t, "all is settled", func() bool { return len(s.stock) == 0 })
}

// plant is a runner on a store in memory whose pushes may fail.
type plant struct {
	*Runner
	t   *testing.T
	c   *tarry.Client // on the store itself
	eng *frail
	end func()
}

// frail is an engine whose pushes fail or change as a test says.
type frail struct {
	engine.Engine
	mu   sync.Mutex
	push func(do func() ([]engine.PushResult, error)) ([]engine.PushResult, error)
}

func (f *frail) Push(ctx context.Context, ms []engine.Message) ([]engine.PushResult, error) {
	f.mu.Lock()
	push := f.push
	f.mu.Unlock()
	do := func() ([]engine.PushResult, error) { return f.Engine.Push(ctx, ms) }
	if push == nil {
		return do()
	}
	return push(do)
}

func (f *frail) pushes(push func(do func() ([]engine.PushResult, error)) ([]engine.PushResult, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.push = push
}

func newPlant(t *testing.T, intakes ...Intake) *plant {
	t.Helper()
	eng, err := engine.Open(context.Background(), "mem:")
	if err != nil {
		t.Fatal(err)
	}
	p := &plant{t: t, c: tarry.New(eng, nil), eng: &frail{Engine: eng}}
	pusher := tarry.New(p.eng, nil)
	p.Runner = NewRunner(pusher, &RunnerConfig{Logger: slog.New(slog.DiscardHandler)})
	if err := p.Set(intakes); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	p.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		p.end()
		if err := errors.Join(pusher.Close(), p.c.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// has fails the test unless the queue has these bodies.
func (p *plant) has(queue string, want ...string) {
	p.t.Helper()
	var got []string
	for m, err := range p.c.List(context.Background(), queue, tarry.Scheduled) {
		if err != nil {
			p.t.Fatal(err)
		}
		got = append(got, string(m.Body))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.t.Errorf("%s has %q, want %q", queue, got, want)
	}
}

// says waits until the first intake has this state and code.
func (p *plant) says(state State, code string) Status {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		st := p.Status()[0]
		if st.State == state && st.Code == code {
			return st
		}
		if time.Now().After(end) {
			p.t.Fatalf("the state is %s %q, want %s %q", st.State, st.Code, state, code)
		}
	}
}

// acked waits until all that the first intake has taken counts as acked, and it runs. It is
// counted after the source has acked it.
func (p *plant) acked() (st Status) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if st = p.says(Running, ""); st.Unacked == 0 {
			return st
		}
		if time.Now().After(end) {
			p.t.Fatalf("%d are unacked", st.Unacked)
		}
	}
}

// later is a message that is due in an hour.
func later(body string, opts ...tarry.PushOption) *Message {
	return &Message{Draft: tarry.NewDraft("", []byte(body), append(opts, tarry.In(time.Hour))...)}
}

var errDown = errors.New("connection refused")
