package redisengine

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
)

// refer runs do on the shard of a ref and converts its error to an engine.Error.
func (e *Engine) refer(ctx context.Context, op string, ref engine.Ref, do func(s *shard, id, key string) error) error {
	if err := e.calls.Enter(ctx, op); err != nil {
		return err
	}
	defer e.calls.Leave()
	if err := ref.Check(op); err != nil {
		return err
	}
	s, id, key := e.locate(ref)
	if s == nil {
		return engine.Refuse(op, ref, engine.ErrNotFound)
	}
	return about(op, ref, do(s, id, key))
}

// locate returns the shard of a ref, and the id and key that scripts take; a nil shard if
// there is no such shard.
func (e *Engine) locate(ref engine.Ref) (s *shard, id, key string) {
	s = e.queue(ref.Queue).of(ref)
	if ref.ID != 0 {
		return s, member(ref.ID), ""
	}
	return s, "", ref.Key
}

// errDead is the error of a call that needs a live message.
var errDead = errors.New("dead")

// about converts the error of a call about one message.
func about(op string, ref engine.Ref, err error) error {
	switch err {
	case nil, engine.ErrLeased, engine.ErrNotFound:
		return engine.Refuse(op, ref, err)
	case engine.ErrExists:
		return engine.RefuseTaken(ref)
	case errDead:
		return engine.RefuseDead(op, ref)
	}
	var known *engine.Error
	if !errors.As(err, &known) && errors.As(fault(op, ref.Queue, err), &known) {
		known.ID, known.Key = ref.ID, ref.Key
	}
	return known
}

// outcome reads the status that an answer begins with, and returns the values after it.
func outcome(values []rueidis.RedisMessage) ([]rueidis.RedisMessage, error) {
	if len(values) == 0 {
		return nil, errAnswer
	}
	switch code, err := values[0].ToString(); {
	case err != nil:
		return nil, errAnswer
	case code == "dead":
		return nil, errDead
	case code != "":
		if err := engine.FromCode(code); err != nil {
			return nil, err
		}
		return nil, errAnswer
	case len(values) != 5:
		return nil, errAnswer
	}
	return values[1:], nil
}

// Cancel removes messages; by id also dead ones.
func (e *Engine) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	if err := e.calls.Enter(ctx, "cancel"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	errs := make([]error, len(refs))
	b := batch{e: e, room: 2}
	for i, ref := range refs {
		if errs[i] = ref.Check("cancel"); errs[i] != nil {
			continue
		}
		s, id, key := e.locate(ref)
		if s == nil {
			errs[i] = engine.Refuse("cancel", ref, engine.ErrNotFound)
			continue
		}
		b.add(s, i, len(key), byte(ref.IfState), id, key)
	}
	for _, c := range b.calls {
		c.args[ahead], c.args[ahead+1] = c.hows(), cancellers(refs, c.items)
	}
	b.run(ctx, cancelScript, func(c *call, values []rueidis.RedisMessage, _ int64, err error) {
		if err == nil && len(values) != len(c.items) {
			err = errAnswer
		}
		for n, i := range c.items {
			if err != nil {
				errs[i] = about("cancel", refs[i], err)
				continue
			}
			switch code, _ := values[n].AsInt64(); {
			case code == 1:
				errs[i] = about("cancel", refs[i], engine.ErrNotFound)
			case code == 2:
				errs[i] = about("cancel", refs[i], engine.ErrLeased)
			case code > 10:
				errs[i] = engine.RefuseState("cancel", refs[i], engine.State(code-10))
			}
		}
	})
	return errs, nil
}

// cancellers returns the cancellers of these refs, as lua/cancel.lua reads it.
func cancellers(refs []engine.Ref, items []int) string {
	var b []byte
	for i := 0; i < len(items); {
		by, from := refs[items[i]].By, i
		for i++; i < len(items) && refs[items[i]].By == by; i++ {
		}
		if by == "" && i-from == len(items) {
			return ""
		}
		b = append(binary.BigEndian.AppendUint16(append(b, byte(len(by))), uint16(i-from)), by...)
	}
	return rueidis.BinaryString(b)
}

// Reschedule moves the due time of a scheduled or ready message. The Info leaves out a large
// body.
func (e *Engine) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	var i engine.Info
	err := e.refer(ctx, "reschedule", ref, func(s *shard, id, key string) error {
		a := e.ask1(ctx, rescheduleScript, s, id, key, when(due), stateArg(ref.IfState))
		if a.err != nil {
			return a.err
		}
		if len(a.values) < 2 {
			return errAnswer
		}
		values, err := outcome(a.values[1:])
		if err == engine.ErrStale && len(a.values) > 2 {
			is, _ := a.values[2].AsInt64()
			return engine.RefuseState("reschedule", ref, engine.State(is))
		}
		if err != nil {
			return err
		}
		e.soon(s, &a.values[0])
		i, _, err = readMessage(ref.Queue, values, a.now)
		return err
	})
	return i, err
}

// Get returns a message with its body.
func (e *Engine) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	var i engine.Info
	err := e.refer(ctx, "get", ref, func(s *shard, id, key string) error {
		a := e.ask1(ctx, getScript, s, id, key)
		switch {
		case a.err != nil:
			return a.err
		case len(a.values) == 0:
			return engine.ErrNotFound
		case len(a.values) == 3:
			var err error
			i, err = readFinished(ref.Queue, key, a.values)
			return err
		case len(a.values) != 4:
			return errAnswer
		}
		var err error
		i, _, err = readMessage(ref.Queue, a.values, a.now)
		return err
	})
	return i, err
}
