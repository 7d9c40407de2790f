package sqltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// owner makes random calls on its own messages, and handles all messages.
type owner struct {
	engines []engine.Whole // of as many processes
	ledger  *ledger
	ctx     context.Context
	rand    *rand.Rand
	name    string
	pushed  int
	dead    []engine.ID
}

// some returns the engine of a random process.
func (o *owner) some() engine.Whole { return o.engines[o.rand.IntN(len(o.engines))] }

// due returns a time that is past, or comes soon.
func (o *owner) due() engine.When {
	switch o.rand.IntN(4) {
	case 0:
		return engine.When{At: time.Now().Add(-time.Hour)}
	case 1:
		return engine.When{At: time.Now().Add(-time.Duration(o.rand.IntN(2000)) * time.Millisecond)}
	case 2:
		return engine.When{In: time.Duration(o.rand.IntN(50)) * time.Millisecond}
	}
	return engine.When{}
}

func (o *owner) message(key int) engine.Message {
	m := engine.Message{Queue: "q", Key: fmt.Sprint(o.name, "-", key), Due: o.due()}
	m.Isolate = new(false) // else a lease may last for half a minute longer
	if o.rand.IntN(3) == 0 {
		m.Priority = new(uint32(o.rand.IntN(3)))
	}
	return m
}

// do makes a random call.
func (o *owner) do() error {
	key := o.rand.IntN(o.pushed + 1)
	ref := engine.Ref{Queue: "q", Key: fmt.Sprint(o.name, "-", key)}
	switch o.rand.IntN(8) {
	case 0:
		m := o.message(key)
		m.OnConflict = engine.Replace
		_, err := o.some().Push(o.ctx, []engine.Message{m})
		return err
	case 1:
		_, err := o.some().Reschedule(o.ctx, ref, o.due())
		if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrLeased) {
			return nil
		}
		return err
	case 2:
		return o.cancel(ref)
	case 3:
		return o.redrive()
	case 4, 5, 6:
		return o.handle()
	}
	var msgs []engine.Message
	for range 1 + o.rand.IntN(4) {
		msgs = append(msgs, o.message(o.pushed))
		o.pushed++
	}
	_, err := o.some().Push(o.ctx, msgs)
	return err
}

func (o *owner) cancel(ref engine.Ref) error {
	m, err := o.some().Get(o.ctx, ref)
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	errs, err := o.some().Cancel(o.ctx, []engine.Ref{{Queue: "q", ID: m.ID}})
	if err == nil && errs[0] == nil {
		o.ledger.went(m.ID)
	}
	return err
}

// redrive redrives buried messages.
func (o *owner) redrive() error {
	if len(o.dead) == 0 {
		return nil
	}
	_, err := o.some().Redrive(o.ctx, "q", o.dead, 0)
	o.dead = nil
	return err
}

// handle leases messages, and settles most of them in a random way.
func (o *owner) handle() error {
	ttr := time.Minute
	if o.rand.IntN(3) == 0 {
		ttr = time.Duration(1+o.rand.IntN(50)) * time.Millisecond
	}
	begun := o.ledger.begin()
	g, err := o.some().Lease(o.ctx, []engine.Want{{Queue: "q", Max: 1 + o.rand.IntN(6), TTR: ttr, Remote: true}})
	if err != nil {
		return err
	}
	if err := o.ledger.leased(begun, &g); err != nil {
		return err
	}
	var settle []engine.Settlement
	var ids []engine.ID
	for _, l := range g.Queues[0].Messages {
		s := engine.Settlement{Token: l.Token, Do: engine.Release}
		switch o.rand.IntN(8) {
		case 0:
			s.Do = engine.Ack
		case 1:
			s.Do, s.When = engine.Retry, new(o.due())
		case 2:
			s.Do, s.When = engine.Snooze, new(o.due())
		case 3:
			s.Do = engine.Bury
			o.dead = append(o.dead, l.ID)
		case 4:
			s.Do, s.TTR = engine.Extend, time.Duration(1+o.rand.IntN(50))*time.Millisecond
		case 5:
			if ttr < time.Minute {
				continue // it lapses
			}
		}
		if s.Do != engine.Ack && o.rand.IntN(3) == 0 {
			s.Priority = new(uint32(o.rand.IntN(3)))
		}
		settle, ids = append(settle, s), append(ids, l.ID)
		o.ledger.settle(l.ID)
	}
	if settle == nil {
		return nil
	}
	settled, err := o.some().Settle(o.ctx, settle)
	for i := range settled {
		if settle[i].Do == engine.Ack && settled[i].Err == nil {
			o.ledger.went(ids[i])
		}
	}
	return err
}
