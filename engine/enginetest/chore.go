package enginetest

import (
	"math/rand/v2"
	"slices"
)

// mostMeanwhile is how many steps are played during one chore.
const mostMeanwhile = 12

// chore makes the engine do one of its chores, and plays steps meanwhile.
func (p *player) chore(n [8]uint32) {
	if len(p.b.h.Chores) == 0 {
		return
	}
	c := pick(p.b.h.Chores, n[0])
	p.logf("%s", c.Name)
	err := p.meanwhile("chore", n, func() error { return c.Do(p.e) })
	p.hear(err)
	if err != nil {
		p.failf("%s: %v", c.Name, err)
	}
}

// meanwhile runs do and plays steps during it.
func (p *player) meanwhile(what string, n [8]uint32, do func() error) error {
	if p.b.h.Meanwhile == nil || p.inChore || what != "chore" && (p.fault != nil || p.b.h.Losses != nil) {
		return do()
	}
	p.inChore = true
	defer func() { p.inChore = false }()
	r := rand.New(rand.NewPCG(uint64(n[1]), uint64(n[2])))
	bag := slices.Repeat([]string{"chore"}, 6)
	for _, k := range kinds {
		if k.kind != "reopen" {
			bag = append(bag, slices.Repeat([]string{k.kind}, k.weight)...)
		}
	}
	bag = append(bag, slices.Repeat([]string{"settle"}, 10)...) // chores may record leases again
	often, left := 1+r.IntN(4), mostMeanwhile
	return p.b.h.Meanwhile(p.e, what, do, func(where string) {
		if left == 0 || p.problem != "" || p.failed || r.IntN(often) > 0 {
			return
		}
		s := drawStep(r, bag)
		if s.kind == "chore" && what == "chore" {
			return // one would wait for the other
		}
		left--
		p.logf("(meanwhile, at %s)", where)
		if p.tick(); p.problem == "" {
			p.call(s)
		}
	})
}

// alone plays a step. If the engine decides in it once, about one message, other steps are
// played in the middle of the call.
func (p *player) alone(s step) {
	switch s.kind {
	case "push", "cancel", "reschedule", "get": // other calls read on after they have decided
		_ = p.meanwhile("call", s.n, func() error { p.do(s); return nil })
	default:
		p.do(s)
	}
}
