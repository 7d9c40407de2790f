package redisengine

import (
	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// A message that remembers its key leaves a memory after its end. The memory replaces the id
// under the key: id, due, how it ended, since when, and when it is forgotten (MEMORY of
// lua/message.lua).

// readMemory reads a finished message from a script's answer.
func readMemory(queue, key string, v *rueidis.RedisMessage) (engine.Info, error) {
	raw, err := v.AsBytes()
	if err != nil {
		return engine.Info{}, errAnswer
	}
	r := reader{codec.Reader{B: raw}}
	i := engine.Info{ID: engine.ID(r.Uint(8)), Queue: queue, Key: key, State: engine.Finished}
	i.Due, i.Ending = r.instant(), engine.Ending(r.Byte())
	i.Ended, i.Forgotten = r.instant(), r.instant()
	if r.End() != nil || i.ID == 0 {
		return engine.Info{}, errRecord
	}
	return i, nil
}

// remembered reads the answer to a push with a remembered key.
func remembered(m *engine.Message, met []rueidis.RedisMessage) engine.PushResult {
	i, err := readMemory(m.Queue, m.Key, &met[1])
	if err != nil {
		return engine.PushResult{Err: fault("push", m.Queue, err)}
	}
	r := engine.PushResult{ID: i.ID, Due: i.Due, State: i.State, Ending: i.Ending, Ended: i.Ended}
	if done, _ := met[0].ToString(); done == "kept" {
		r.Outcome = engine.Kept
	} else {
		r.Err = engine.RefuseFinished(engine.Ref{Queue: m.Queue, Key: m.Key}, i.Ending, i.Ended)
	}
	return r
}
