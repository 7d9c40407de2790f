package sstable

import (
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

const (
	groupBits    = 64 * groupWords
	pieceEntries = 64 * pieceWords
)

// TestLiveAgainstModel kills by ones and ranges over many groups, asks, saves and restores.
func TestLiveAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 63, 64, 65, groupBits, groupBits + 1, pieceEntries - 1, pieceEntries + 100}).Draw(t, "n")
		r, dead := newLive(uint32(n), groupWords), make([]bool, n)
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
				if got := killRange(r, uint32(from), uint32(to)); got != killed {
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
			check(t, r, dead, from, to)
			check(t, r, dead, 0, n)
		}
		if r.Kill(uint32(n)) || r.Alive(uint32(n)) {
			t.Fatal("there is one more")
		}
		b, alive := r.AppendBits(nil)
		if alive != r.Count(0, uint32(n)) {
			t.Fatalf("%d are alive, want %d", alive, r.Count(0, uint32(n)))
		}
		again := newLive(uint32(n), groupWords)
		if !again.RestoreBits(b) {
			t.Fatal("it cannot be read")
		}
		check(t, again, dead, 0, n)
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

// TestBitsOfManyEntries saves and restores what is deleted of as many entries as merges make: their bits are far
// more than the unpacker unpacks at once.
func TestBitsOfManyEntries(t *testing.T) {
	const n, every = 20*pieceEntries + 100, 1001
	l := newLive(n, groupWords)
	for i := uint32(0); i < n; i += every {
		l.Kill(i)
	}
	b, alive := l.AppendBits(nil)
	again := newLive(n, groupWords)
	if !again.RestoreBits(b) {
		t.Fatal("it cannot be read")
	}
	if got := again.Count(0, n); got != alive || again.Alive((n-1)/every*every) {
		t.Errorf("%d are alive, want %d", got, alive)
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
					killed += killRange(l, i, i+3)
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

// FuzzRestoreBits: nothing panics, and what is malformed changes nothing.
func FuzzRestoreBits(f *testing.F) {
	l := newLive(pieceEntries+200, groupWords)
	killRange(l, 5, 50)
	b, _ := l.AppendBits(nil)
	f.Add(uint32(pieceEntries+200), b)
	f.Add(uint32(pieceEntries+201), b[:len(b)-1])
	f.Add(uint32(pieceEntries+300), b)
	f.Add(uint32(200), b)
	f.Add(uint32(0), []byte{})
	f.Fuzz(func(t *testing.T, n uint32, b []byte) {
		n %= 2 * pieceEntries
		l := newLive(n, groupWords)
		if !l.RestoreBits(b) {
			if l.Count(0, n) != int(n) {
				t.Fatal("what is malformed deletes entries")
			}
			return
		}
		b, alive := l.AppendBits(nil)
		again := newLive(n, groupWords)
		if !again.RestoreBits(b) || again.Count(0, n) != alive || alive != l.Count(0, n) {
			t.Fatalf("%d are alive, of %d", again.Count(0, n), l.Count(0, n))
		}
	})
}
