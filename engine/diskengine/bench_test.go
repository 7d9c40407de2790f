package diskengine

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
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

// BenchmarkBare writes the entries of a push and of a cancel with Pebble alone,
// synced, from 64 goroutines: what Benchmark is to be measured against.
func BenchmarkBare(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("Push-%d", n), func(b *testing.B) { bare(b, n, barePush) })
	}
	b.Run("Cancel", func(b *testing.B) { bare(b, 1, bareCancel) })
}

// bare runs b.N operations, n to a batch.
func bare(b *testing.B, n int, entries func(c *pebble.Batch, id engine.ID) error) {
	e := benchEngine(b).(*Engine)
	defer e.Close()
	db := e.store.db
	var last atomic.Uint64
	b.SetParallelism(32) // on two cores: 64 goroutines
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c := db.NewBatch()
			for i := range n {
				if i > 0 && !pb.Next() {
					break
				}
				if err := entries(c, engine.ID(last.Add(1))); err != nil {
					b.Error(err)
				}
			}
			var counters [64]byte
			err := c.Set(appendHead(nil, kindCounts, 1), counts{1, 2, 3}.append(counters[:0]), nil)
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
	r := record{id: id, due: due, expires: never, key: fmt.Sprintf("order-%d", id), Content: engine.Content{Body: make([]byte, 200)}}
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
		idKey(nil, kindMessage, 1, id), timeKey(nil, kindDue, 1, position{due, id}), nameKey(nil, 1, fmt.Sprintf("order-%d", id)),
	} {
		if err := c.Delete(key, nil); err != nil {
			return err
		}
	}
	return c.Merge(minuteKey(nil, 1, minuteOf(due)), appendSum(nil, -1), nil)
}
