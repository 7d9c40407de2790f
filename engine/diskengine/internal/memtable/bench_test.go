//go:build unix

package memtable

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"
)

var pending = flag.Int("pending", 100_000, "entries there are in benchmarks")

// cpu is the processor time of this process so far: on a machine with other work to do, the
// clock on the wall says little.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// each measures fn for each of b.N.
func each(b *testing.B, fn func(i int)) {
	runtime.GC()
	b.ResetTimer()
	from := cpu()
	for i := range b.N {
		fn(i)
	}
	b.ReportMetric(float64(cpu()-from)/float64(b.N), "cpu-ns/op")
}

// sample has messages of 200 bytes that are due over two days, in no order.
func sample(onHeap bool) (*Tables, func(id int) Entry) {
	rng := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 215)
	draw := func(id int) Entry {
		return Entry{ID: uint64(id), Queue: 1, At: 1893456000000 + rng.Int64N(48*3600e3), Key: fmt.Appendf(nil, "order-%07d", id), Value: value}
	}
	return New(&Config{OnHeap: onHeap}), draw
}

func filled(b *testing.B) (*Tables, func(id int) Entry) {
	r, draw := sample(false)
	for id := range *pending {
		r.Add(draw(id + 1))
	}
	b.Cleanup(r.Close)
	return r, draw
}

// BenchmarkAdd fills an empty one, and says what an entry takes besides its key and value.
func BenchmarkAdd(b *testing.B) {
	for b.Loop() {
		r, draw := sample(false)
		from := cpu()
		var drawing time.Duration
		for id := range *pending {
			r.Add(draw(id + 1))
		}
		r.active.order()
		spent := cpu() - from
		from = cpu()
		for id := range *pending {
			draw(id + 1)
		}
		drawing = cpu() - from
		taken, _ := r.Memory()
		b.ReportMetric(float64(spent-drawing)/float64(*pending), "cpu-ns/entry")
		b.ReportMetric(float64(taken)/float64(*pending)-float64(215+13), "overhead-bytes/entry")
		r.Close()
	}
}

// BenchmarkReplaceAll removes one entry and adds another, as entries come and go.
func BenchmarkReplaceAll(b *testing.B) {
	r, draw := filled(b)
	rng := rand.New(rand.NewPCG(3, 4))
	live := make([]uint64, *pending)
	for i := range live {
		live[i] = uint64(i + 1)
	}
	each(b, func(i int) {
		k := rng.IntN(len(live))
		r.Remove(live[k])
		live[k] = uint64(*pending + i + 1)
		r.Add(draw(int(live[k])))
	})
}

func BenchmarkByKey(b *testing.B) {
	r, _ := filled(b)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, name := range []string{"found", "missing"} {
		b.Run(name, func(b *testing.B) {
			key := make([]byte, 0, 32)
			each(b, func(int) {
				key = fmt.Appendf(key[:0], "order-%07d", rng.IntN(*pending)+1)
				if name == "missing" {
					key[0] = 'x'
				}
				if _, found := r.ByKey(1, Live, key); found != (name == "found") {
					b.Fatal(string(key))
				}
			})
		})
	}
}

// BenchmarkAscend walks 256 entries from some time on, of what stands in some memtables.
func BenchmarkAscend(b *testing.B) {
	for memtables := 1; memtables <= 3; memtables++ {
		b.Run(fmt.Sprint("memtables ", memtables), func(b *testing.B) {
			r, draw := sample(false)
			defer r.Close()
			for id := range *pending {
				if id > 0 && id%(*pending/memtables+1) == 0 {
					r.Seal()
				}
				r.Add(draw(id + 1))
			}
			rng := rand.New(rand.NewPCG(3, 4))
			const most = 256
			walked, sum := 0, 0
			each(b, func(int) {
				n := 0
				r.Ascend(1, Live, Position{At: 1893456000000 + rng.Int64N(47*3600e3)}, func(e Entry) bool {
					n++
					sum += len(e.Value)
					return n < most
				})
				walked += n
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(walked), "ns/entry")
		})
	}
}

// BenchmarkCountRange counts what lies between two times, by chance.
func BenchmarkCountRange(b *testing.B) {
	r, _ := filled(b)
	rng := rand.New(rand.NewPCG(3, 4))
	sum := int64(0)
	each(b, func(int) {
		from := Position{At: 1893456000000 + rng.Int64N(24*3600e3)}
		sum += r.CountRange(1, Live, from, Position{At: from.At + rng.Int64N(24*3600e3)})
	})
	b.ReportMetric(float64(sum)/float64(b.N), "entries/op")
}

func BenchmarkByID(b *testing.B) {
	r, _ := filled(b)
	rng := rand.New(rand.NewPCG(3, 4))
	each(b, func(int) {
		if _, found := r.ByID(uint64(rng.IntN(*pending) + 1)); !found {
			b.Fatal("not found")
		}
	})
}

// BenchmarkPass goes through a sealed memtable.
func BenchmarkPass(b *testing.B) {
	r, _ := filled(b)
	s := r.Seal()
	left := b.N
	b.ResetTimer()
	from := cpu()
	for left > 0 {
		n := s.Pass(Live, min(left, 256), func(Entry) {})
		if left -= n; n == 0 {
			s.Again()
		}
	}
	b.ReportMetric(float64(cpu()-from)/float64(b.N), "cpu-ns/op")
}

// BenchmarkCollect measures what a collection of garbage costs beside so many entries.
func BenchmarkCollect(b *testing.B) {
	filled(b)
	each(b, func(int) { runtime.GC() })
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/float64(*pending), "heap-bytes/entry")
}

// BenchmarkOrder is the order of time alone, for comparison with others.
func BenchmarkOrder(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	o := newOrder(&pool{})
	items := make([]item, *pending)
	for i := range items {
		items[i] = item{hi: 1, ref: uint32(i), at: rng.Int64N(48 * 3600e3), id: uint64(i)}
	}
	from := cpu()
	for i := range items {
		o.insert(items[i])
	}
	insert := cpu() - from
	from = cpu()
	for c := o.seek(item{}); c.item() != nil; c.next() {
	}
	walk := cpu() - from
	taken, _ := o.pool.memory()
	rng.Shuffle(len(items), func(i, k int) { items[i], items[k] = items[k], items[i] })
	from = cpu()
	for i := range items {
		o.remove(items[i])
	}
	n := float64(len(items))
	for b.Loop() { // once
	}
	b.ReportMetric(float64(insert)/n, "insert-cpu-ns")
	b.ReportMetric(float64(walk)/n, "walk-cpu-ns")
	b.ReportMetric(float64(cpu()-from)/n, "remove-cpu-ns")
	b.ReportMetric(float64(taken)/n, "bytes/item")
	o.close()
	for o.pool = (&pool{}); o.pool.trim(1); {
	}
}
