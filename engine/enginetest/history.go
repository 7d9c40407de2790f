package enginetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// step is one operation of a history. When it is played, its numbers select a queue, a key,
// an earlier lease or a delay. So any part of a history is a history.
type step struct {
	kind  string
	n     [8]uint32
	fault uint32 // for histories with faults
}

// historyLength is the number of steps of a history unless its harness says otherwise.
const historyLength = 250

// endless is the number of messages after which a list counts as endless.
const endless = 100_000

var kinds = []struct {
	kind   string
	weight int
}{
	{"push", 24}, {"push many", 4}, {"push atomic", 2}, {"lease", 14}, {"settle", 16}, {"claim", 5},
	{"cancel", 4}, {"reschedule", 4}, {"get", 4}, {"peek", 2}, {"find", 1}, {"list", 3}, {"count", 2}, {"forecast", 1},
	{"pause", 1}, {"resume", 2}, {"purge", 1}, {"redrive", 3}, {"time", 12}, {"reopen", 1}, {"configure", 3}, {"settings", 1},
}

func newHistory(seed uint64, h *Harness) []step {
	r := rand.New(rand.NewPCG(seed, 0))
	var bag []string
	for _, k := range kinds {
		bag = append(bag, slices.Repeat([]string{k.kind}, k.weight)...)
	}
	if len(h.Chores) > 0 {
		bag = append(bag, slices.Repeat([]string{"chore"}, 6)...)
	}
	if h.Crash != nil {
		bag = append(bag, "crash", "crash", "purge", "back", "back")
	}
	steps := make([]step, cmp.Or(h.Steps, historyLength))
	for i := range steps {
		steps[i] = drawStep(r, bag)
	}
	return steps
}

func drawStep(r *rand.Rand, bag []string) step {
	s := step{kind: bag[r.IntN(len(bag))]}
	for j := range s.n {
		s.n[j] = r.Uint32()
	}
	s.fault = r.Uint32()
	return s
}

var historyTests = []test{{"random histories agree with the model", func(b *bed) { b.histories(nil) }}}

// histories plays random histories, with fault in some of their steps.
func (b *bed) histories(fault *Fault) {
	b.Helper()
	b.need("Get", b.caps.Get)
	count, seed := b.count(), rand.Uint64()
	if s, ok := b.seed(); ok {
		count, seed = 1, s
	}
	b.Logf("%d histories from seed %d", count, seed)
	var start time.Time
	if b.h.Clock != nil {
		start = b.h.Clock.Now().Truncate(time.Hour).Add(30*time.Minute + 17*time.Second)
	}
	for i := range uint64(count) {
		b.history(seed+i, start, fault)
	}
}

// count returns how many random histories to run.
func (b *bed) count() int {
	count := cmp.Or(b.h.Histories, 20)
	switch {
	case thorough():
		return 4 * count
	case testing.Short():
		return (count + 1) / 2
	}
	return count
}

// history plays the history of a seed, with fault in some of its steps.
func (b *bed) history(seed uint64, start time.Time, fault *Fault) {
	b.Helper()
	steps := newHistory(seed, &b.h)
	p := b.play(seed, steps, start, fault)
	if p.problem == "" {
		return
	}
	steps, p = b.shrink(seed, steps, p, start)
	b.Fatalf("replay with TARRY_TEST_SEED=%d; cut down to %d steps:\n%s\n%s\n%s", seed, len(steps), strings.Join(p.log, "\n"), p.last, p.problem)
}

// shrink removes as many steps as it can from a failing history so that it still fails.
func (b *bed) shrink(seed uint64, steps []step, failed *player, start time.Time) ([]step, *player) {
	tries, giveUp := 400, time.Now().Add(30*time.Second)
	for size := len(steps) / 2; size > 0 && tries > 0; size /= 2 {
		for from := 0; from < len(steps) && tries > 0 && time.Now().Before(giveUp); tries-- {
			less := slices.Concat(steps[:from], steps[min(from+size, len(steps)):])
			if p := b.play(seed, less, start, failed.fault); p.problem != "" {
				steps, failed = less, p
			} else {
				from += size
			}
		}
	}
	return steps, failed
}

// play plays a history on a fresh engine and a fresh model.
func (b *bed) play(seed uint64, steps []step, start time.Time, fault *Fault) *player {
	b.Helper()
	if b.h.Seed != nil {
		b.h.Seed(seed)
	}
	p := newPlayer(b, start)
	p.fault = fault
	for n := 2 + seed/7%uint64(max(1, b.h.Queues-1)); uint64(len(p.queues)) < n; {
		p.queues = append(p.queues, b.queueName(fmt.Sprint("t-", len(p.queues)+1)))
	}
	defer func() {
		if p.problem != "" && b.h.Last != nil {
			p.last = b.h.Last(p.e)
		}
		if err := p.e.Close(); err != nil && p.problem == "" && !p.faultPending {
			p.failf("close: %v", err)
		}
	}()
	for _, s := range steps {
		if p.play(s); p.problem != "" {
			return p
		}
	}
	p.logf("(the end)")
	all := len(p.log)
	p.guard(p.compareAll)
	p.log = append(p.log[:all:all], p.log[max(all, len(p.log)-1):]...) // the last look at the engine
	return p
}

func (p *player) logf(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf("%3d  ", len(p.log)+1)+fmt.Sprintf(format, args...))
}

// failf records the first disagreement; the history ends there.
func (p *player) failf(format string, args ...any) {
	if p.problem == "" {
		p.problem = fmt.Sprintf(format, args...)
	}
}
