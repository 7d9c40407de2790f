package enginetest

import (
	"math/rand/v2"
	"slices"
)

// mostMeanwhile is how many steps are played in the midst of one chore.
const mostMeanwhile = 12

// chore has the engine do one of its chores, and plays steps meanwhile.
func (p *player) chore(n [8]uint32) {
	if len(p.b.h.Chores) == 0 {
		return
	}
	c := pick(p.b.h.Chores, n[0])
	p.logf("%s", c.Name)
	err := p.meanwhile(n, func() error { return c.Do(p.e) }, func(string) bool { return true })
	p.hear(err)
	if err != nil {
		p.failf("%s: %v", c.Name, err)
	}
}

// meanwhile carries something out, and plays steps in the midst of it where that may be.
func (p *player) meanwhile(n [8]uint32, do func() error, may func(where string) bool) error {
	if p.b.h.Meanwhile == nil || p.amid {
		return do()
	}
	p.amid = true
	defer func() { p.amid = false }()
	r := rand.New(rand.NewPCG(uint64(n[1]), uint64(n[2])))
	var bag []string
	for _, k := range kinds {
		if k.kind != "reopen" {
			bag = append(bag, slices.Repeat([]string{k.kind}, k.weight)...)
		}
	}
	often, left := 1+r.IntN(4), mostMeanwhile
	return p.b.h.Meanwhile(p.e, do, func(where string) {
		if left == 0 || p.problem != "" || p.failed || !may(where) || r.IntN(often) > 0 {
			return
		}
		left--
		p.logf("(meanwhile, at %s)", where)
		if p.tick(); p.problem == "" {
			p.call(drawStep(r, bag))
		}
	})
}
