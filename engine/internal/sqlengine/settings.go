package sqlengine

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/tarryhq/tarry/engine"
)

// Settings returns the settings of a queue and their revision.
func (e *Engine) Settings(ctx context.Context, name string) (engine.Settings, string, error) {
	if err := e.calls.Enter(ctx, "settings"); err != nil {
		return engine.Settings{}, "", err
	}
	defer e.calls.Leave()
	num, err := e.number(ctx, name, false)
	if err != nil || num == 0 {
		return engine.Settings{}, revision(0), err
	}
	_, heads, err := e.heads(ctx, "settings", e.cache.lowBounds([]int64{num}))
	if err != nil {
		return engine.Settings{}, "", err
	}
	return heads[0].Settings, revision(heads[0].Revision), nil
}

// Configure stores the settings of a queue. Before it returns, it drops the dead messages that
// they do not keep.
func (e *Engine) Configure(ctx context.Context, name string, s engine.Settings, old string) (string, error) {
	const op = "configure"
	if err := e.calls.Enter(ctx, op); err != nil {
		return "", err
	}
	defer e.calls.Leave()
	num, err := e.number(ctx, name, true)
	if err != nil {
		return "", err
	}
	if err := e.lapseAll(ctx, op, num); err != nil { // a lapse may make messages dead
		return "", err
	}
	if err := e.dropDead(ctx, op, num); err != nil { // messages that the old settings dropped must not come back
		return "", err
	}
	made := ""
	one := []int64{num}
	err = e.do(ctx, op, one, First{Lock: one}, nil, func(w *work) error {
		q := w.queues[num]
		if made = revision(q.Revision); old != "" && old != made {
			return engine.RefuseRevision(name, made)
		}
		q.Settings = s
		q.Settings.Defaults = s.Defaults.Clone()
		q.Revision = uint64(1 + rand.Int64N(math.MaxInt64)) // random, so that a revision lost in a failover does not come again
		if s.Rate == 0 {
			q.Base = 0 // full when a rate is set again
		}
		made = revision(q.Revision)
		q.dirty = true
		q.stir()
		return nil
	})
	if err != nil {
		return "", err
	}
	return made, e.dropDead(ctx, op, num)
}

func revision(n uint64) string { return strconv.FormatUint(n, 10) }

// dropDead drops all dead messages that the settings of a queue do not keep.
func (e *Engine) dropDead(ctx context.Context, op string, num int64) error {
	one := []int64{num}
	for more := true; more; {
		err := e.do(ctx, op, one, First{Whole: true, Lock: one}, nil, func(w *work) error {
			if err := w.dropOld(one); err != nil {
				return err
			}
			if boundsDead(&w.queues[num].Settings) {
				if err := w.write(); err != nil {
					return err
				}
				w.clean()
				if err := w.dropExcess(num); err != nil {
					return err
				}
			}
			more = false
			for _, x := range w.rows {
				more = more || x.gone
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
