package diskengine

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

var quietLog = slog.New(slog.NewTextHandler(io.Discard, nil))

func benchEngine(b *testing.B) engine.Engine {
	e, err := Open(b.TempDir(), &Config{Logger: quietLog, MinFreeBytes: -1})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func Benchmark(b *testing.B) { enginetest.Bench(b, benchEngine) }

// BenchmarkClient takes the whole path of single calls, as tarry bench does.
func BenchmarkClient(b *testing.B) {
	b.Run("Push", func(b *testing.B) {
		client(b, 0, func(c *tarry.Client, id engine.ID) error {
			m := benchMessage(id)
			_, err := c.Push(context.Background(), m.Queue, m.Body, tarry.At(m.Due.At), tarry.Key(m.Key))
			return err
		})
	})
	b.Run("Cancel", func(b *testing.B) {
		client(b, b.N, func(c *tarry.Client, id engine.ID) error {
			return c.Cancel(context.Background(), tarry.ByKey(benchKey(id)).Of("bench"))
		})
	})
}

// client runs b.N operations of a client whose store holds some messages.
func client(b *testing.B, pending int, op func(c *tarry.Client, id engine.ID) error) {
	e := benchEngine(b)
	defer e.Close()
	for from := 0; from < pending; from += 1000 {
		var msgs []engine.Message
		for id := from + 1; id <= min(pending, from+1000); id++ {
			msgs = append(msgs, benchMessage(engine.ID(id)))
		}
		if _, err := e.Push(context.Background(), msgs); err != nil {
			b.Fatal(err)
		}
	}
	c := tarry.New(e, nil)
	defer c.Close()
	var last atomic.Uint64
	b.SetParallelism(32) // on two cores: 64 goroutines
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := op(c, engine.ID(last.Add(1))); err != nil {
				b.Error(err)
			}
		}
	})
}

func benchKey(id engine.ID) string { return fmt.Sprintf("order-%d", id) }

func benchMessage(id engine.ID) engine.Message {
	return engine.Message{
		Queue: "bench", Key: benchKey(id), Due: engine.When{At: time.UnixMilli(benchDue(id))},
		Content: engine.Content{Body: make([]byte, 200)},
		Terms:   engine.Terms{TTR: time.Minute},
	}
}

// BenchmarkBare writes the entries of a push and of a cancel with Pebble alone,
// synced, from 64 goroutines: what the others are to be measured against.
func BenchmarkBare(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("Push-%d", n), func(b *testing.B) { bare(b, n, false, barePush) })
	}
	b.Run("Cancel", func(b *testing.B) { bare(b, 1, true, bareCancel) })
}

// bare runs b.N operations, n to a batch, on an empty store or on one that holds
// the entries of as many pushes.
func bare(b *testing.B, n int, filled bool, entries func(c *pebble.Batch, id engine.ID) error) {
	e := benchEngine(b).(*Engine)
	defer e.Close()
	db := e.store.db
	for from := 0; filled && from < b.N; from += 1000 {
		c := db.NewBatch()
		for id := from + 1; id <= min(b.N, from+1000); id++ {
			if err := barePush(c, engine.ID(id)); err != nil {
				b.Fatal(err)
			}
		}
		if err := c.Commit(pebble.Sync); err != nil {
			b.Fatal(err)
		}
		_ = c.Close()
	}
	var last atomic.Uint64
	b.SetParallelism(32) // on two cores: 64 goroutines
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for more := pb.Next(); more; {
			c := db.NewBatch()
			for i := 0; more && i < n; i++ {
				if err := entries(c, engine.ID(last.Add(1))); err != nil {
					b.Error(err)
				}
				more = pb.Next()
			}
			var counters [64]byte
			err := c.Set(appendHead(nil, kindCounts, 1), counts{waiting: 1, leased: 2, dead: 3}.append(counters[:0]), nil)
			if err == nil {
				err = c.Commit(pebble.Sync)
			}
			if err != nil {
				b.Error(err)
			}
			_ = c.Close()
		}
	})
}

func benchDue(id engine.ID) int64 {
	return time.Now().UnixMilli() + int64(uint64(id)*2654435761%uint64(48*time.Hour/time.Millisecond))
}

func barePush(c *pebble.Batch, id engine.ID) error {
	due := benchDue(id)
	r := record{id: id, due: due, expires: never, key: benchKey(id), Content: engine.Content{Body: make([]byte, 200)}}
	if err := c.Set(idKey(nil, kindMessage, 1, id), r.append(nil), nil); err != nil {
		return err
	}
	if err := c.Set(timeKey(nil, kindDue, 1, r.position()), binary.BigEndian.AppendUint32(nil, 1024), nil); err != nil {
		return err
	}
	if err := c.Set(nameKey(nil, 1, r.key), keyRef{id: id, due: due}.append(nil), nil); err != nil {
		return err
	}
	return c.Merge(minuteKey(nil, 1, minuteOf(due)), appendSum(nil, 1), nil)
}

func bareCancel(c *pebble.Batch, id engine.ID) error {
	due := benchDue(id)
	for _, key := range [][]byte{
		idKey(nil, kindMessage, 1, id), timeKey(nil, kindDue, 1, position{due, id}), nameKey(nil, 1, benchKey(id)),
	} {
		if err := c.Delete(key, nil); err != nil {
			return err
		}
	}
	return c.Merge(minuteKey(nil, 1, minuteOf(due)), appendSum(nil, -1), nil)
}

// BenchmarkSpread leases and acks 10,000 messages that are due, of so many queues, a
// hundred wants and a thousand acks a call. One operation is one message; what pushing
// them costs is not in it.
func BenchmarkSpread(b *testing.B) {
	const n = 10_000
	for _, queues := range []int{1, 100, n} {
		b.Run(fmt.Sprint(queues), func(b *testing.B) {
			msgs := make([]engine.Message, n)
			for i := range msgs {
				msgs[i] = engine.Message{Queue: fmt.Sprint("queue-", i%queues), Content: engine.Content{Body: make([]byte, 200)}}
			}
			order := rand.Perm(queues)
			for done := 0; done < b.N; done += n {
				b.StopTimer()
				e, err := Open("data", &Config{FS: vfs.NewMem(), Logger: quietLog, BallastBytes: -1})
				if err != nil {
					b.Fatal(err)
				}
				for some := range slices.Chunk(msgs, 1000) {
					if _, err := e.Push(b.Context(), some); err != nil {
						b.Fatal(err)
					}
				}
				runtime.GC()
				b.StartTimer()
				leaseAndAck(b, e, n, func(i int) string { return msgs[order[i%queues]].Queue })
				b.StopTimer()
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// leaseAndAck leases and acks n messages of the queues named.
func leaseAndAck(b *testing.B, e *Engine, n int, queue func(i int) string) {
	var acks []engine.Settlement
	for i, left := 0, n; left > 0; {
		wants := make([]engine.Want, 0, 100)
		for names := map[string]bool{}; len(wants) < 100 && !names[queue(i)]; i++ {
			names[queue(i)] = true
			wants = append(wants, engine.Want{Queue: queue(i), TTR: time.Minute})
		}
		for j := range wants {
			wants[j].Max = 100 / len(wants)
		}
		grant, err := e.Lease(b.Context(), wants)
		if err != nil {
			b.Fatal(err)
		}
		for _, g := range grant.Queues {
			for _, l := range g.Messages {
				acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
				left--
			}
		}
		if len(acks) >= 1000 || left == 0 {
			if _, err := e.Settle(b.Context(), acks); err != nil {
				b.Fatal(err)
			}
			acks = acks[:0]
		}
	}
}
