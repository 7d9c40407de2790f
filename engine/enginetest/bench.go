package enginetest

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Bench runs the shared benchmarks, which make engines comparable. They are single pushes
// with a key from many goroutines, batches of 100, cancels by key, and leases with acks in
// batches of 100. Bodies have 200 bytes. One operation is one message. open opens an empty
// engine, which Bench closes.
func Bench(b *testing.B, open func(b *testing.B) engine.Engine) {
	for _, bench := range []struct {
		name string
		run  func(b *testing.B, e engine.Engine)
	}{
		{"Push", benchPush},
		{"PushBatch", benchPushBatch},
		{"Cancel", benchCancel},
		{"LeaseAck", benchLeaseAck},
	} {
		b.Run(bench.name, func(b *testing.B) {
			e := open(b)
			b.ReportAllocs()
			bench.run(b, e)
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

const (
	benchQueue = "bench"
	benchBatch = 100
)

// benchMessage returns the n-th message, due within the next 48 hours or now.
func benchMessage(e engine.Engine, n int, later bool) engine.Message {
	m := engine.Message{
		Queue:   benchQueue,
		Content: engine.Content{Body: make([]byte, 200)},
	}
	if e.Capabilities().Keys {
		m.Key = strconv.Itoa(n)
	}
	if later {
		// A multiplicative hash: due times come in no order, as with real users.
		m.Due.In = time.Minute + time.Duration(uint64(n)*2654435761%uint64(48*time.Hour/time.Millisecond))*time.Millisecond
	}
	return m
}

// benchFill pushes n messages, untimed.
func benchFill(b *testing.B, e engine.Engine, n int, later bool) {
	for from := 0; from < n; from += 1000 {
		var msgs []engine.Message
		for i := from; i < min(n, from+1000); i++ {
			msgs = append(msgs, benchMessage(e, i, later))
		}
		benchMustPush(b, e, msgs)
	}
}

func benchMustPush(b *testing.B, e engine.Engine, msgs []engine.Message) {
	r, err := e.Push(context.Background(), msgs)
	if err == nil && r[0].Err != nil {
		err = r[0].Err
	}
	if err != nil {
		b.Error(err)
	}
}

func benchPush(b *testing.B, e engine.Engine) {
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			benchMustPush(b, e, []engine.Message{benchMessage(e, int(n.Add(1)), true)})
		}
	})
}

func benchPushBatch(b *testing.B, e engine.Engine) {
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for more := pb.Next(); more; {
			msgs := make([]engine.Message, 0, benchBatch)
			for ; more && len(msgs) < benchBatch; more = pb.Next() {
				msgs = append(msgs, benchMessage(e, int(n.Add(1)), true))
			}
			benchMustPush(b, e, msgs)
		}
	})
}

func benchCancel(b *testing.B, e engine.Engine) {
	if c := e.Capabilities(); !c.Cancel || !c.Keys {
		b.Skipf("%s: no capability Cancel by key", c.Name)
	}
	benchFill(b, e, b.N, true)
	var n atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key := strconv.FormatInt(n.Add(1)-1, 10)
			errs, err := e.Cancel(context.Background(), []engine.Ref{{Queue: benchQueue, Key: key}})
			if err != nil || errs[0] != nil {
				b.Error(err, errs)
			}
		}
	})
}

func benchLeaseAck(b *testing.B, e engine.Engine) {
	benchFill(b, e, b.N, false)
	b.ResetTimer()
	for done, idle := 0, 0; done < b.N; {
		g, err := e.Lease(context.Background(), []engine.Want{{Queue: benchQueue, Max: benchBatch, Worker: "bench.example:12345"}})
		if err != nil || g.Queues[0].Err != nil {
			b.Fatal(err, g)
		}
		var acks []engine.Settlement
		for _, l := range g.Queues[0].Messages {
			acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
		}
		if idle++; len(acks) > 0 {
			idle = 0
		} else if idle > 1_000_000 {
			b.Fatalf("%d of %d came", done, b.N)
		}
		settled, err := e.Settle(context.Background(), acks)
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range settled {
			if s.Err != nil {
				b.Fatal(s.Err)
			}
		}
		done += len(acks)
	}
}
