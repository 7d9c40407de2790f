package enginetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// past is a message that finished.
type past struct {
	engine.Info
	gone  bool // the history did not list it, or was allowed to drop it
	unmet bool // it expired: an engine may not have noticed
}

// record adds x, which somebody ended in this way at that instant, to the history.
func (m *Model) record(x *modelMessage, how engine.Ending, by string, at, now time.Time) {
	i := x.info(now)
	if how == engine.Acked { // a lapse of this lease is already recorded
		i.LastError, i.Failures = x.LastError, slices.Clone(x.Failures[max(0, len(x.Failures)-engine.MaxFailures):])
	}
	y := &past{
		Info: engine.Info{
			ID: x.ID, Queue: x.Queue, Key: x.Key, Due: x.Due, Created: x.Created, Attempt: x.Attempt,
			State: engine.Finished, Ending: how, Ended: at, LastError: i.LastError, Failures: i.Failures, Worker: by,
		},
		unmet: how == engine.Expired,
	}
	if how == engine.Acked {
		y.Started = x.Started
	}
	m.past = append(m.past, y)
	m.age(now)
}

// age marks what the histories of all queues may drop.
func (m *Model) age(now time.Time) {
	slices.SortFunc(m.past, func(a, b *past) int { return byEnd(b.Info, a.Info) })
	n := map[string]int64{}
	for _, y := range m.past {
		kept := m.kept(y.Queue)
		if !y.young(kept, now) {
			y.gone = true
		} else if n[y.Queue]++; n[y.Queue] > kept.Max {
			y.gone = true
		}
	}
}

// kept returns the history of a queue.
func (m *Model) kept(queue string) engine.History {
	s := m.settings[queue].Settings
	return engine.History{}.Of(&s)
}

// young reports whether a history may still list y.
func (y *past) young(kept engine.History, now time.Time) bool {
	return kept.Keep > 0 && now.Before(y.Ended.Add(kept.Keep))
}

// history returns the finished messages of a queue that are listed, the newest first.
func (m *Model) history(queue string, now time.Time) (all []engine.Info) {
	for _, y := range m.past {
		listed := !y.gone
		if m.shown != nil && (y.gone || y.unmet) {
			listed = m.shown(y.ID)
		}
		if y.Queue == queue && listed && y.young(m.kept(queue), now) {
			i := y.Info
			i.Failures = slices.Clone(i.Failures)
			all = append(all, i)
		}
	}
	return all
}

// pastOf returns the finished message that ref names: by id, or the newest with the key; nil:
// none.
func (m *Model) pastOf(ref engine.Ref, now time.Time) *engine.Info {
	for _, i := range m.history(ref.Queue, now) {
		if i.ID == ref.ID || ref.ID == 0 && i.Key == ref.Key && ref.Key != "" {
			return &i
		}
	}
	return nil
}

func byEnd(a, b engine.Info) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.ID, b.ID)) }

// unlisted leaves open what the history lists, if the engine has just not listed a message.
func (p *player) unlisted() {
	if short := p.b.h.Unlisted; short == nil || !short(p.e) {
		return
	}
	for _, y := range p.m.past {
		y.unmet = true
	}
}
