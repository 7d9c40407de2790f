package disktest

import (
	"iter"
	"math/rand/v2"
)

// Chooser decides what a loss of power leaves. Choose returns a number below n, which is at
// least 2: 0 is the sure state, n-1 the newest one.
type Chooser interface {
	Choose(n int) int
}

// ChooserFunc makes a function a Chooser.
type ChooserFunc func(n int) int

// Choose implements Chooser.
func (f ChooserFunc) Choose(n int) int { return f(n) }

// Nothing leaves only the sure state.
func Nothing() Chooser { return ChooserFunc(func(int) int { return 0 }) }

// Everything leaves the newest state of all things.
func Everything() Chooser { return ChooserFunc(func(n int) int { return n - 1 }) }

// Only leaves the sure state of all things but the i-th choice, counted from 0.
func Only(i int) Chooser { return single(i, false) }

// AllBut leaves the newest state of all things but the i-th choice, counted from 0.
func AllBut(i int) Chooser { return single(i, true) }

func single(i int, newest bool) Chooser {
	at := -1
	return ChooserFunc(func(n int) int {
		at++
		if newest != (at == i) {
			return n - 1
		}
		return 0
	})
}

// Seeded chooses at random. The seed decides how: by a coin for each thing, with a preference
// for sure states, with one for new states, or with one that changes now and then. Then
// neighbours share a fate.
func Seeded(seed uint64) Chooser {
	rng := rand.New(rand.NewPCG(seed, 0x7461727279))
	lean := [...]int{50, 10, 90, 50}[seed%4]
	arrived := rng.IntN(2) == 0
	return ChooserFunc(func(n int) int {
		if seed%4 < 3 {
			arrived = rng.IntN(100) < lean
		} else if rng.IntN(8) == 0 {
			arrived = !arrived
		}
		if !arrived {
			return 0
		}
		if rng.IntN(4) == 0 {
			return rng.IntN(n)
		}
		return n - 1
	})
}

// Every gives a Chooser for each possible sequence of choices. Each must be used for one Crash
// of the same disk before the next is taken.
func Every() iter.Seq[Chooser] {
	return func(yield func(Chooser) bool) {
		for p := new(path); yield(p) && p.next(); {
		}
	}
}

// path is one way through a tree of choices.
type path struct {
	taken, of []int
	at        int
}

// Choose implements Chooser.
func (p *path) Choose(n int) int {
	if p.at == len(p.taken) {
		p.taken, p.of = append(p.taken, 0), append(p.of, n)
	}
	p.at++
	return p.taken[p.at-1]
}

// next turns to the next path, and reports whether there is one.
func (p *path) next() bool {
	p.at = 0
	for i := len(p.taken) - 1; i >= 0; i-- {
		if p.taken[i]+1 < p.of[i] {
			p.taken[i]++
			p.taken, p.of = p.taken[:i+1], p.of[:i+1]
			return true
		}
	}
	return false
}
