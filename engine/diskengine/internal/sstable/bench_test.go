//go:build unix

package sstable

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

const benchValue = 200

// BenchmarkRun writes an sstable, 10 million entries long if TARRY_TEST_THOROUGH is set, in the
// directory for temporary files, and then does to it what an engine does. Values are of 200
// bytes, noise or documents that are packed, each entry has a key, ten queues share them.
func BenchmarkRun(b *testing.B) {
	some := noise(1 << 20)
	b.Run("noise", func(b *testing.B) {
		benchTable(b, func(i int) []byte { return some[i*251%(len(some)-benchValue):][:benchValue] })
	})
	value := make([]byte, 0, 1<<10)
	b.Run("documents", func(b *testing.B) {
		benchTable(b, func(i int) []byte {
			for value = value[:0]; len(value) < benchValue; i += 7919 {
				value = append(value, document(i)...)
			}
			return value[:benchValue]
		})
	})
}

func benchTable(b *testing.B, value func(i int) []byte) {
	n := disktest.Thorough(1_000_000, 10)
	dir, cfg := b.TempDir(), &Config{ID: 1}
	start, used := time.Now(), processors(b)
	make := func(number uint64, n int, id func(int) uint64) *Table {
		w, err := Create(vfs.OS{}, dir, number, cfg)
		must(b, err)
		for i := range n {
			must(b, w.Add(Place{uint32(i / (n / 10)), int64(i % (n / 10)), id(i)}, keyOf(int(id(i))), value(i)))
		}
		r, err := w.Finish()
		must(b, err)
		return r
	}
	scattered := func(i int) uint64 { return uint64(i) * 7919 % uint64(n) } // 7919 is prime
	r := make(1, n, scattered)
	took := time.Since(start).Seconds()
	written := fmt.Sprintf("%.0f entries/s, %.0f MB/s, %.0f ns of processors each, %.0f bytes an entry in the file", float64(n)/took,
		float64(r.Bytes())/took/1e6, float64(processors(b)-used)/float64(n), float64(r.Bytes())/float64(n))
	must(b, r.Close())
	r = nil
	before := heapInUse()
	r, err := Open(vfs.OS{}, dir, 1, cfg)
	must(b, err)
	b.Logf("%d entries: written with %s; open %.2f bytes of memory an entry", n, written, float64(heapInUse()-before)/float64(n))
	rng := rand.New(rand.NewPCG(1, 2))

	b.Run("open", func(b *testing.B) {
		loop(b, func() {
			r, err := Open(vfs.OS{}, dir, 1, cfg)
			must(b, err)
			must(b, r.Close())
		})
	})
	b.Run("hash", func(b *testing.B) {
		loop(b, func() { secret.Key(1, "order-1234567890") })
	})
	keys := func() []Key {
		var all []Key
		for range 100_000 {
			all = append(all, keyOf(rng.IntN(n)))
		}
		return all
	}()
	b.Run("key hit", func(b *testing.B) {
		i := 0
		loop(b, func() {
			i++
			if _, ok, err := r.FindKey(keys[i%len(keys)]); !ok || err != nil {
				b.Fatal(ok, err)
			}
		})
	})
	b.Run("key miss", func(b *testing.B) {
		i := 0
		loop(b, func() {
			i++
			k := keys[i%len(keys)]
			k[0], k[1], k[9] = k[0]+byte(i), k[1]+byte(i>>8), k[9]+1
			if _, ok, err := r.FindKey(k); ok || err != nil {
				b.Fatal(ok, err)
			}
		})
	})
	b.Run("id", func(b *testing.B) {
		loop(b, func() {
			if _, ok, err := r.FindID(uint64(rng.IntN(n))); !ok || err != nil {
				b.Fatal(ok, err)
			}
		})
	})
	b.Run("get", func(b *testing.B) {
		loop(b, func() {
			_, err := r.Get(uint32(rng.IntN(n)))
			must(b, err)
		})
	})
	b.Run("search", func(b *testing.B) {
		loop(b, func() {
			_, err := search(r, Place{uint32(rng.IntN(10)), int64(rng.IntN(n / 10)), 0})
			must(b, err)
		})
	})
	b.Run("scan", func(b *testing.B) {
		s := r.Scan(0, r.Len())
		loop(b, func() {
			if !s.Next() {
				must(b, s.Err())
				must(b, s.Close())
				s = r.Scan(0, r.Len())
			}
		})
		must(b, s.Close())
	})
	b.Run("count", func(b *testing.B) {
		loop(b, func() { r.Count(uint32(n)/20+1, uint32(n)-1) })
	})
	b.Run("save who is dead", func(b *testing.B) {
		for i := range uint32(n / 10) {
			r.Kill(i * 10)
		}
		var saved []byte
		loop(b, func() { saved, _ = r.AppendBits(saved[:0]) })
		b.ReportMetric(float64(len(saved))*8/float64(n), "bits/entry")
	})
	b.Run("merge", func(b *testing.B) {
		other := make(2, n/4, func(i int) uint64 { return uint64(n + i) })
		start, entries := processors(b), uint32(0)
		for i := uint64(3); b.Loop(); i++ {
			m, err := Merge(vfs.OS{}, dir, i, cfg, []*Table{r, other})
			must(b, err)
			entries += m.Run.Len()
			must(b, m.Run.Remove())
		}
		b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "entries/s")
		b.ReportMetric(float64(processors(b)-start)/float64(entries), "cpu-ns/entry")
		must(b, other.Close())
	})
	must(b, r.Close())
}

// loop is b.Loop that tells of the time of processors too, which matters where others use them.
func loop(b *testing.B, call func()) {
	start := processors(b)
	for b.Loop() {
		call()
	}
	b.ReportMetric(float64(processors(b)-start)/float64(b.N), "cpu-ns/op")
}

// processors is the time of them that the process has used.
func processors(b *testing.B) time.Duration {
	var u unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
