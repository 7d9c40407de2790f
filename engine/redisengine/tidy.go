package redisengine

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// tidyAge is how old an engine must be to look after the registry: programs that only
// push a message have no time for that.
const tidyAge = time.Minute

// tidyNow forgets queues that hold nothing and are used no more, unless it is too early
// or some other engine has done so within the hour. Nobody may ever list them.
func (e *Engine) tidyNow() {
	r := e.registry
	if time.Since(e.opened) < tidyAge {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, ioTimeout)
	defer cancel()
	set := e.client.B().Set().Key(r.tidied).Value(e.origin).Nx().Ex(noteAgain).Build()
	if err := e.client.Do(ctx, set).Error(); err != nil {
		return // it is another's turn, or not the time for it
	}
	_ = e.tidy(e.ctx) // what remains is found in an hour
}

// tidy looks at all queues.
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
		e.forgetQueues(ctx, empty(infos))
		after = names[len(names)-1]
	}
}

// empty returns the names of queues that are.
func empty(infos []counted) (names []string) {
	for i := range infos {
		if isEmpty(&infos[i]) {
			names = append(names, infos[i].Queue)
		}
	}
	return names
}

// isEmpty says that a queue holds nothing, is not paused and has no settings.
func isEmpty(i *counted) bool {
	if i.settings != nil && !i.settings.Unset() {
		return false
	}
	return i.Scheduled+i.Ready+i.Leased+i.Dead+i.Finished == 0 && !i.Paused
}
