package tarry_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	_ "github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// BenchmarkSpread measures what a message costs, from its due time to its ack, when a
// burst of 10,000 lies in one queue, and when each lies in a queue of its own, all handled
// by one worker.
func BenchmarkSpread(b *testing.B) {
	engines := map[string]func(b *testing.B) engine.Engine{
		"mem": func(*testing.B) engine.Engine { return memengine.New(nil) },
		"disk": func(b *testing.B) engine.Engine {
			e, err := diskengine.Open(b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			return e
		},
		"http": func(b *testing.B) engine.Engine { return remote(b, memengine.New(nil)) },
	}
	for _, name := range []string{"mem", "disk", "http"} {
		for _, queues := range []int{1, 100, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, queues), func(b *testing.B) {
				least := int64(math.MaxInt64) // of the runs, as others may use the machine
				for b.Loop() {
					eng := engines[name](b)
					least = min(least, spread(b, eng, queues, 10_000))
					if err := eng.Close(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(least)/1e3/10_000, "cpu-µs/msg")
			})
		}
	}
}

// spread returns the CPU time of a burst of n messages over the queues given.
func spread(b *testing.B, eng engine.Engine, queues, n int) int64 {
	c := tarry.New(eng, nil)
	defer c.Close()
	due := time.Now().Add(time.Second)
	body := make([]byte, 200)
	msgs := make([]tarry.Draft, n)
	for i := range msgs {
		msgs[i] = tarry.NewDraft(fmt.Sprint("q", i%queues), body, tarry.At(due))
	}
	for len(msgs) > 0 {
		k := min(len(msgs), 1000)
		if _, err := c.PushMany(b.Context(), msgs[:k]); err != nil {
			b.Fatal(err)
		}
		msgs = msgs[k:]
	}
	var acked atomic.Int64
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: func(e tarry.Event) {
		if e.Kind == tarry.Acked && acked.Add(1) == int64(n) {
			cancel()
		}
	}})
	for i := range queues {
		tarry.Handle(w, tarry.NewTopic[[]byte](fmt.Sprint("q", i)), func(context.Context, *tarry.Message[[]byte]) error { return nil })
	}
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	left := time.Until(due) - 10*time.Millisecond
	if left < 0 {
		b.Error("the pushes took too long")
	}
	time.Sleep(left)
	before := cpu()
	<-ctx.Done()
	spent := cpu() - before
	if err := <-ran; err != nil {
		b.Fatal(err)
	}
	return spent
}

// remote is an engine served over loopback.
func remote(b *testing.B, eng engine.Engine) engine.Engine {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	c := tarry.New(eng, nil)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.New(c, nil).Serve(ctx, ln) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
		_ = c.Close()
		_ = eng.Close()
	})
	e, err := engine.Open(b.Context(), "http://"+ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// cpu is the CPU time of this process in nanoseconds.
func cpu() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
