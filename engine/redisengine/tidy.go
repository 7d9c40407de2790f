package redisengine

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// tidyAge is the age from which an engine cleans up the registry: a short-lived program that
// only pushes has no time for that.
const tidyAge = time.Minute

// tidyNow removes empty, unused queues from the registry, unless another engine did so
// within the hour. No list would find these queues otherwise.
func (e *Engine) tidyNow() {
	ctx, cancel := context.WithTimeout(e.ctx, ioTimeout)
	defer cancel()
	set := e.client.B().Set().Key(e.registry.tidied).Value(e.origin).Nx().Ex(noteAgain).Build()
	if err := e.client.Do(ctx, set).Error(); err != nil {
		return // another engine did it within the hour
	}
	_ = e.tidy(e.ctx) // the next run finds what remains
}

// tidy checks all queues.
func (e *Engine) tidy(ctx context.Context) error {
	for after := ""; ; {
		names, err := e.names(ctx, after, engine.MaxPage)
		if err != nil || len(names) == 0 {
			return err
		}
		infos, err := e.counts(ctx, names)
		if err != nil {
			return err
		}
		e.forgetEmpty(ctx, infos)
		after = names[len(names)-1]
	}
}

// isEmpty reports that a queue holds nothing, is not paused and has no settings.
func isEmpty(i *counted) bool {
	if i.settings != nil && !i.settings.Unset() {
		return false
	}
	return i.Scheduled+i.Ready+i.Leased+i.Dead+i.Finished == 0 && !i.history && !i.Paused
}
