package redisengine

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// readEntry reads a listed message (ENTRY of lua/message.lua).
func readEntry(queue string, id engine.ID, v *rueidis.RedisMessage) (engine.Info, error) {
	raw, err := v.AsBytes()
	if err != nil {
		return engine.Info{}, errAnswer
	}
	r := reader{codec.Reader{B: raw}}
	i := engine.Info{ID: id, Queue: queue, State: engine.Finished}
	i.Ending, i.Attempt, i.Due = engine.Ending(r.Byte()), uint32(r.Uint(4)), r.instant()
	started := r.instant()
	i.Ended, i.Created = r.instant(), time.UnixMilli(int64(r.Uint(createdBytes))/1000).UTC()
	i.Key = r.short()
	failures := codec.Reader{B: r.Take(r.Uint(2))}
	i.Failures = failures.Failures()
	if r.Err != nil || failures.Err != nil {
		return engine.Info{}, errRecord
	}
	if n := len(i.Failures); n > 0 {
		i.LastError = i.Failures[n-1].Reason
	}
	if i.Worker = string(r.B); i.Ending == engine.Acked {
		i.Started = started
	}
	return i, nil
}

// readFinished reads the memory of a key and the listed message from a script's answer. One of
// them may be missing.
func readFinished(queue, key string, values []rueidis.RedisMessage) (engine.Info, error) {
	memory, _ := values[0].ToString()
	id, err := readID(&values[1])
	if err != nil {
		return engine.Info{}, err
	}
	var i engine.Info
	if memory != "" {
		if i, err = readMemory(queue, key, &values[0]); err != nil {
			return i, err
		}
	}
	if entry, _ := values[2].ToString(); entry != "" || memory == "" {
		free := i.Forgotten
		i, err = readEntry(queue, id, &values[2])
		i.Forgotten = free
	}
	return i, err
}
