package sstable

import (
	"bytes"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

const groupBits = 64 * groupWords

// bare is an sstable of which there is no file.
func bare(n uint32) *Table {
	return &Table{Live: newLive(n, groupWords), name: "bare", number: 3, seed: 11}
}

// TestLiveAgainstModel kills by ones and ranges over many groups, asks, saves and restores.
func TestLiveAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 63, 64, 65, groupBits, groupBits + 1, liveChunk - 1, liveChunk + 100}).Draw(t, "n")
		r, dead := bare(uint32(n)), make([]bool, n)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		for range rapid.IntRange(0, 5).Draw(t, "steps") {
			from, to := rng.IntN(n+1), rng.IntN(n+1)
			killed := 0
			kill := func(i int) {
				if !dead[i] {
					killed++
				}
				dead[i] = true
			}
			if rng.IntN(2) == 0 {
				for i := from; i < to; i++ {
					kill(i)
				}
				if got := r.KillRange(uint32(from), uint32(to)); got != killed {
					t.Fatalf("%d killed, want %d", got, killed)
				}
			} else if n > 0 {
				for range rng.IntN(3000) {
					i := rng.IntN(n)
					kill(i)
					r.Kill(uint32(i))
				}
			}
			from, to = rng.IntN(n+1), rng.IntN(n+1)
			check(t, r.Live, dead, from, to)
			check(t, r.Live, dead, 0, n)
		}
		if r.Kill(uint32(n)) || r.Alive(uint32(n)) {
			t.Fatal("there is one more")
		}
		b, alive := r.AppendLive(nil)
		if alive != r.Count(0, uint32(n)) {
			t.Fatalf("%d are alive, want %d", alive, r.Count(0, uint32(n)))
		}
		again := bare(uint32(n))
		rest, err := again.RestoreLive(b)
		must(t, err)
		check(t, again.Live, dead, 0, n)
		if same, _ := again.AppendLive(nil); len(rest) > 0 || !bytes.Equal(same, b) {
			t.Fatal("it reads otherwise than it was written")
		}
		for i := range n {
			if again.Alive(uint32(i)) == dead[i] {
				t.Fatalf("%d: alive is %v", i, !dead[i])
			}
		}
	})
}

func check(t failer, l *Live, dead []bool, from, to int) {
	t.Helper()
	count, first, last := 0, -1, -1
	for i := from; i < to; i++ {
		if !dead[i] {
			count++
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	next, hasNext := l.Next(uint32(from), uint32(to))
	prev, hasPrev := l.Prev(uint32(from), uint32(to))
	if got := l.Count(uint32(from), uint32(to)); got != count || hasNext != (count > 0) || hasPrev != (count > 0) ||
		hasNext && (int(next) != first || int(prev) != last) {
		t.Fatal(from, to, "has", got, next, prev, "want", count, first, last)
	}
}

// TestKillsSideBySide are counted once each.
func TestKillsSideBySide(t *testing.T) {
	const n = 3 * groupBits
	l := newLive(n, groupWords)
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for k := range 4 {
		wg.Go(func() {
			killed := 0
			for i := uint32(0); i < n; i++ {
				switch {
				case i%7 == 0 && l.Kill(i):
					killed++
				case k == 1 && i%1000 == 0:
					killed += l.KillRange(i, i+3)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			total += killed
		})
	}
	wg.Wait()
	if left := l.Count(0, n); left != n-total || l.Count(1, n-1)+2 != left+1 { // the first is dead
		t.Errorf("%d killed, %d left", total, left)
	}
}

// TestRotInSavedLive flips each bit: it is noticed and changes nothing.
func TestRotInSavedLive(t *testing.T) {
	r := bare(70_000)
	r.KillRange(100, 130)
	r.KillRange(liveChunk, 70_000)
	b, _ := r.AppendLive(nil)
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			again := bare(70_000)
			if _, err := again.RestoreLive(b); !errors.Is(err, ErrDamaged) || again.Count(0, 70_000) != 70_000 {
				t.Fatalf("byte %d: %v", i, err)
			}
			b[i] ^= 1 << bit
		}
	}
	for i := range b {
		if _, err := bare(70_000).RestoreLive(b[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%d bytes: %v", i, err)
		}
	}
	if _, err := bare(70_001).RestoreLive(b); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	le.PutUint32(b[4:], liveVersion+1)
	le.PutUint32(b, crc32.Update(r.seed, castagnoli, b[4:]))
	if _, err := bare(70_000).RestoreLive(b); !errors.Is(err, ErrNewer) {
		t.Error(err)
	}
}

// FuzzLive decodes anything as chunks; what is sound is read again the same.
func FuzzLive(f *testing.F) {
	r := bare(liveChunk + 200)
	r.KillRange(5, 50)
	b, _ := r.AppendLive(nil)
	f.Add(uint32(liveChunk+200), b[liveHead:])
	r.KillRange(40, liveChunk-3)
	b, _ = r.AppendLive(nil)
	f.Add(uint32(liveChunk+200), b[liveHead:])
	f.Add(uint32(200), []byte{deadList, 2, 0, 1, 0, 1, 0})
	f.Add(uint32(70), append([]byte{deadBits}, make([]byte, 16)...))
	f.Fuzz(func(t *testing.T, n uint32, b []byte) {
		n %= 4 * liveChunk
		l, ok := decodeLive(b, n)
		if !ok {
			return
		}
		r := &Table{Live: l}
		b, _ = r.AppendLive(nil)
		again, ok := decodeLive(b[liveHead:], n)
		if !ok || again.Count(0, n) != l.Count(0, n) {
			t.Fatal("it reads otherwise than it was written")
		}
		for i, w := range l.dead {
			if again.dead[i] != w {
				t.Fatal("others are dead")
			}
		}
	})
}
