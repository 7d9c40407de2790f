package enginetest

import (
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// memory is a key that a message has left behind.
type memory struct {
	queue, key string
	id         engine.ID
	due        time.Time
	how        engine.Ending
	ended      time.Time
	forgotten  time.Time // from when on the key is free
}

// remembered returns what is remembered of a key, or nil.
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

// end removes x, which has gone in such a way at that instant, and remembers its key
// unless another message has come to hold it.
func (m *Model) end(x *modelMessage, how engine.Ending, at, now time.Time) {
	m.remove(x)
	forgotten := at.Add(x.Remember)
	if x.Key == "" || m.live(x.Queue, x.Key, now) != nil {
		return
	}
	if !now.Before(forgotten) {
		if x.Remember > 0 { // an engine may have met it in time, and count it yet
			m.faded[x.Queue]++
		}
		return
	}
	m.forget(x.Queue, x.Key)
	m.memories = append(m.memories, &memory{x.Queue, x.Key, x.ID, x.Due, how, at, forgotten})
}

// forget frees a key that a message comes to hold.
func (m *Model) forget(queue, key string) {
	m.memories = slices.DeleteFunc(m.memories, func(y *memory) bool { return y.queue == queue && y.key == key })
}

// fade forgets the keys whose time is over.
func (m *Model) fade(now time.Time) {
	m.memories = slices.DeleteFunc(m.memories, func(y *memory) bool {
		over := !now.Before(y.forgotten) && transition(finished, opForget).Next == toFree
		if over {
			m.faded[y.queue]++
		}
		return over
	})
}

// standing is where what ref names stands at now: x, or where that is not live what is
// remembered of its key.
func (m *Model) standing(ref engine.Ref, x *modelMessage, now time.Time) (Situation, *memory) {
	s := x.situation(now)
	if ref.ID == 0 && ref.Key != "" && !shownAs[s].Live() {
		if y := m.remembered(ref.Queue, ref.Key); y != nil {
			return finished, y
		}
	}
	return s, nil
}

// passedOn reports whether the key of x has passed on to another, which may have gone since and be
// remembered: that was answered, so no crash undoes that x had died or gone before.
func (m *Model) passedOn(x *modelMessage, now time.Time) bool {
	o := m.live(x.Queue, x.Key, now)
	return o != nil && o != x || m.remembered(x.Queue, x.Key) != nil
}
