package check

import (
	"errors"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
)

// takenBy reports whom a purge takes away of a queue: spares are those that were named before it, and
// lease says until when somebody is leased.
func takenBy(p *record.Purge, spares map[engine.ID]struct{}, lease func(engine.ID) (deadline int64, leased bool)) func(recent.Area, engine.ID) bool {
	if !p.Spares {
		spares = nil
	}
	return func(a recent.Area, id engine.ID) bool {
		if _, spared := spares[id]; spared || id > p.UpTo {
			return false
		}
		switch a {
		case recent.Dead:
			return p.Also&engine.PurgeDead != 0
		case recent.Finished:
			return p.Also&engine.PurgeFinished != 0
		}
		deadline, leased := lease(id)
		return !leased || deadline <= p.At
	}
}

// purgeRun takes them away from a run, and tells of each.
func purgeRun(r *run.Run, queue uint32, a recent.Area, takes func(recent.Area, engine.ID) bool, gone func(engine.ID)) error {
	q, ok := r.Queue(queue)
	if !ok {
		return nil
	}
	s := r.Scan(q.From, q.To)
	for s.Next() {
		e := s.Entry()
		if id := engine.ID(e.ID); takes(a, id) {
			r.Kill(e.Pos)
			gone(id)
		}
	}
	return errors.Join(s.Err(), s.Close())
}
