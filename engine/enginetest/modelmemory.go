package enginetest

import (
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// memory is the remembered key of a finished message.
type memory struct {
	queue, key string
	id         engine.ID
	due        time.Time
	how        engine.Ending
	ended      time.Time
	forgotten  time.Time // from when on the key is free
}

// remembered returns the memory of a key, or nil.
func (m *Model) remembered(queue, key string) *memory {
	for _, y := range m.memories {
		if y.queue == queue && y.key == key {
			return y
		}
	}
	return nil
}

func (y *memory) info() engine.Info {
	return engine.Info{
		ID: y.id, Queue: y.queue, Key: y.key, Due: y.due, State: engine.Finished,
		Ending: y.how, Ended: y.ended, Forgotten: y.forgotten,
	}
}

// end removes x, which ended in this way at that instant, and lists it in the history. It
// remembers the key of x unless another message holds it.
func (m *Model) end(x *modelMessage, how engine.Ending, by string, at, now time.Time) {
	m.remove(x)
	m.record(x, how, by, at, now)
	forgotten := at.Add(x.Remember)
	if x.Key == "" || m.live(x.Queue, x.Key, now) != nil {
		return
	}
	if !now.Before(forgotten) {
		if x.Remember > 0 { // an engine may have remembered it in time, and still count it
			m.faded[x.Queue]++
		}
		return
	}
	m.forget(x.Queue, x.Key)
	m.memories = append(m.memories, &memory{x.Queue, x.Key, x.ID, x.Due, how, at, forgotten})
}

// forget frees a key for a new message.
func (m *Model) forget(queue, key string) {
	m.memories = slices.DeleteFunc(m.memories, func(y *memory) bool { return y.queue == queue && y.key == key })
}

// fade drops expired memories.
func (m *Model) fade(now time.Time) {
	m.memories = slices.DeleteFunc(m.memories, func(y *memory) bool {
		over := !now.Before(y.forgotten) && transition(finished, opForget).Next == toFree
		if over {
			m.faded[y.queue]++
		}
		return over
	})
}

// standing returns the situation of a ref at now: that of x if x is live, else that of the
// memory of its key.
func (m *Model) standing(ref engine.Ref, x *modelMessage, now time.Time) (Situation, *memory) {
	s := x.situation(now)
	if ref.ID == 0 && ref.Key != "" && !shownAs[s].Live() {
		if y := m.remembered(ref.Queue, ref.Key); y != nil {
			return finished, y
		}
	}
	return s, nil
}

// passedOn reports whether another message, live or remembered, holds the key of x. That push
// was answered, so no crash can undo the end of x.
func (m *Model) passedOn(x *modelMessage, now time.Time) bool {
	o := m.live(x.Queue, x.Key, now)
	return o != nil && o != x || m.remembered(x.Queue, x.Key) != nil
}
