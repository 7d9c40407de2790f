package enginetest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// look opens the engine that a power loss at each recent instant would have left. It compares
// it with models, the possible results of the call in progress.
func (p *player) look(models ...*Model) {
	if p.b.h.Losses == nil || p.fault != nil || p.afterPowerLoss {
		return
	}
	for _, open := range p.b.h.Losses(p.e) {
		if p.problem != "" {
			return
		}
		p.find(open, models)
	}
}

// find compares an engine that a power loss left with models, and continues from there.
func (p *player) find(open func(t *testing.T) engine.Engine, models []*Model) {
	q := *p
	q.afterPowerLoss, q.log = true, slices.Clone(p.log)
	q.ids, q.leases = slices.Clone(p.ids), slices.Clone(p.leases)
	q.queueOf, q.swept = maps.Clone(p.queueOf), maps.Clone(p.swept)
	q.revision, q.older = map[string]string{}, map[string]string{}
	q.logf("(the power goes)")
	q.e = open(p.b.T)
	var may []*Model
	for _, m := range models {
		m = m.clone()
		m.now = func() time.Time { return q.now }
		q.crashed(m)
		may = append(may, m)
	}
	if len(may) == 2 {
		may = append(may, q.merged(may[0], may[1]))
	}
	if problems := q.becomes(may); problems != "" {
		q.failf("a loss of power left what is neither as before nor as after the call:%s", problems)
	}
	r := rand.New(rand.NewPCG(uint64(len(p.log)), 2))
	bag := []string{"push", "push", "push many", "lease", "settle", "cancel", "reschedule", "redrive", "count", "list"}
	for range 8 {
		if q.problem == "" {
			q.do(drawStep(r, bag))
		}
	}
	if q.problem == "" && p.b.h.Reopen != nil {
		q.logf("reopen")
		q.e = p.b.h.Reopen(p.b.T, q.e)
		q.restart(q.m)
		q.compareAll()
	}
	if err := q.e.Close(); err != nil {
		q.failf("close: %v", err)
	}
	if q.problem != "" {
		p.problem, p.log = q.problem, q.log
	}
}
