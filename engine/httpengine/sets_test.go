package httpengine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// many is a server, which can be begun anew, and a worker of many queues beside it.
type many struct {
	*testing.T
	local   *tarry.Client
	server  atomic.Pointer[http.Handler]
	named   atomic.Int32 // requests that named their queues
	sets    atomic.Int32 // requests that named a set
	handled chan string
	polled  chan struct{} // told of each poll, where it is not nil
}

func (m *many) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/lease" {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(b))
		if bytes.Contains(b, []byte(`"queues":`)) {
			m.named.Add(1)
		} else {
			m.sets.Add(1)
		}
		if m.polled != nil {
			m.polled <- struct{}{}
		}
	}
	(*m.server.Load()).ServeHTTP(w, r)
}

func (m *many) begin(cfg *server.Config) {
	h := watched(m, server.New(m.local, cfg))
	m.server.Store(&h)
}

// of runs f beside a worker of n queues, q0 and so on.
func of(t *testing.T, n int, cfg *server.Config, handle func(m *many, queue string), f func(m *many), opts ...tarry.HandleOption) {
	eng := memengine.New(nil)
	m := &many{T: t, local: tarry.New(eng, nil), handled: make(chan string, 1000)}
	m.begin(cfg)
	s := httptest.NewServer(m)
	e := open(t, s.URL)
	remote := tarry.New(e, nil)
	ctx, stop := context.WithCancel(t.Context())
	w := tarry.NewWorker(remote, nil)
	for i := range n {
		tarry.Handle(w, tarry.NewTopic[[]byte](fmt.Sprint("q", i)), func(_ context.Context, msg *tarry.Message[[]byte]) error {
			handle(m, msg.Queue)
			m.handled <- msg.Queue
			return nil
		}, opts...)
		opts = nil // for the first alone
	}
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	f(m)
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	_ = remote.Close()
	_ = e.Close()
	_ = m.local.Close()
	s.Close()
	_ = eng.Close()
}

// await wants a message of a queue to be handled.
func (m *many) await(queue string) {
	m.Helper()
	select {
	case got := <-m.handled:
		if got != queue {
			m.Errorf("%s was handled, want %s", got, queue)
		}
	case <-time.After(time.Minute):
		m.Fatalf("%s was not handled", queue)
	}
}

func idle(*many, string) {}

// A worker of many queues names them once, and once more when the server has begun
// anew or has let go of them.
func TestManyQueuesAreNamedOnce(t *testing.T) {
	of(t, 500, nil, idle, func(m *many) {
		for i := range 100 {
			q := fmt.Sprint("q", i)
			push(m.T, m.local, q)
			m.await(q)
		}
		if named, sets := m.named.Load(), m.sets.Load(); named != 1 || sets < 99 {
			m.Errorf("the queues were named in %d requests, a set in %d", named, sets)
		}
		for i := range 5 {
			m.begin(nil)
			for range 3 {
				q := fmt.Sprint("q", i)
				push(m.T, m.local, q)
				m.await(q)
			}
		}
		if named := m.named.Load(); named != 6 {
			m.Errorf("the queues were named in %d requests, of a server that began 6 times", named)
		}
	})
}

// Where the server keeps none they are named each time.
func TestManyQueuesThatAreNotKept(t *testing.T) {
	of(t, 500, &server.Config{MaxSetQueues: -1}, idle, func(m *many) {
		for range 20 {
			push(m.T, m.local, "q7")
			m.await("q7")
		}
		if sets := m.sets.Load(); sets != 0 {
			m.Errorf("a set was named in %d requests", sets)
		}
	})
}

// A queue that has no room is left out while the others are polled, and comes back when
// it has some.
func TestQueueLeavesASetAndComesBack(t *testing.T) {
	first, go_ := make(chan struct{}), make(chan struct{})
	var once sync.Once
	handle := func(m *many, queue string) {
		if queue == "q0" {
			once.Do(func() { close(first) })
			<-go_
		}
	}
	of(t, 500, nil, handle, func(m *many) {
		for range 3 {
			push(m.T, m.local, "q0")
		}
		<-first
		for i := 1; i <= 50; i++ {
			q := fmt.Sprint("q", i)
			push(m.T, m.local, q)
			m.await(q)
		}
		if info, err := m.local.Queue(m.Context(), "q0"); err != nil || info.Leased != 1 || info.Ready != 2 {
			m.Errorf("%+v, %v of a queue with room for one", info, err)
		}
		close(go_)
		for range 3 {
			m.await("q0")
		}
		if named := m.named.Load(); named > 3 {
			m.Errorf("the queues were named in %d requests", named)
		}
	}, tarry.Concurrency(1))
}

// A poll that is cut before anything came does not lose the set that it was to make.
func TestPollThatIsCutKeepsItsSet(t *testing.T) {
	eng := memengine.New(nil)
	m := &many{T: t, local: tarry.New(eng, nil), polled: make(chan struct{}, 100)}
	m.begin(nil)
	s := httptest.NewServer(m)
	e := open(t, s.URL)
	var queues []string
	for i := range 500 {
		queues = append(queues, fmt.Sprint("q", i))
	}
	for range 5 {
		ctx, cut := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := e.LeaseWait(ctx, engine.Wait{Queues: queues, Max: 1, For: time.Minute})
			done <- err
		}()
		<-m.polled
		cut()
		if err := <-done; err == nil {
			t.Error("a poll that was cut has ended well")
		}
	}
	if named := m.named.Load(); named != 1 {
		t.Errorf("the queues were named in %d requests", named)
	}
	_ = e.Close()
	_ = m.local.Close()
	s.Close()
	_ = eng.Close()
}
