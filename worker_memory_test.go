package tarry_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// A queue in which nothing happens takes at most 500 bytes of a worker that waits on it
// and of the dispatcher, beside its name and its topic, which are the caller's.
func TestHeapPerIdleQueue(t *testing.T) {
	const queues = 10_000
	topics := make([]*tarry.Topic[[]byte], queues)
	for i := range topics {
		topics[i] = tarry.NewTopic[[]byte](fmt.Sprint("q", i))
	}
	eng := &asked{Engine: memengine.New(nil), all: make(chan struct{})}
	eng.left.Store(queues)
	c := tarry.New(eng, nil)
	defer c.Close()
	before := heapNow()
	w := tarry.NewWorker(c, nil)
	handler := func(context.Context, *tarry.Message[[]byte]) error { return nil }
	for _, topic := range topics {
		tarry.Handle(w, topic, handler)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	<-eng.all
	// Once this is answered, so is what was asked before.
	if _, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"q0"}, Max: 1}); err != nil {
		t.Fatal(err)
	}
	each := (heapNow() - before) / queues
	t.Logf("%d bytes each", each)
	if each > 500 {
		t.Errorf("an idle queue takes %d bytes, want at most 500", each)
	}
	runtime.KeepAlive(topics)
	cancel()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
}

// asked is an engine that tells when so many queues have been asked for.
type asked struct {
	*memengine.Engine
	left atomic.Int64
	all  chan struct{}
}

// Lease says of each queue that something is due in an hour, as an engine does that
// holds something.
func (a *asked) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	g, err := a.Engine.Lease(ctx, wants)
	for i := range g.Queues {
		g.Queues[i].NextDue = g.Now.Add(time.Hour)
	}
	if a.left.Add(-int64(len(wants))) == 0 {
		close(a.all)
	}
	return g, err
}

// heapNow is the heap in use by what is reachable.
func heapNow() uint64 {
	runtime.GC()
	runtime.GC() // what pools let go of
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
