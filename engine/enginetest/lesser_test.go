package enginetest_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/memengine"
)

// lesser is an engine that can do no more than its capabilities say.
type lesser struct {
	engine.Engine
	caps engine.Capabilities
}

func (e *lesser) Capabilities() engine.Capabilities { return e.caps }

// refuse is the error of a call that names a message, where the engine has no such call.
func (e *lesser) refuse(op string, ref engine.Ref, can bool) error {
	if can && (ref.Key == "" || e.caps.Keys) {
		return nil
	}
	return engine.Refuse(op, ref, engine.ErrUnsupported)
}

func (e *lesser) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	results, err := e.Engine.Push(ctx, nil)
	for i := range msgs {
		if err != nil {
			return nil, err
		}
		var r []engine.PushResult
		if refused := e.refuse("push", engine.Ref{Queue: msgs[i].Queue, Key: msgs[i].Key}, true); refused != nil {
			r = []engine.PushResult{{Err: refused}}
		} else {
			r, err = e.Engine.Push(ctx, msgs[i:i+1])
		}
		results = append(results, r...)
	}
	return results, err
}

func (e *lesser) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	if e.caps.Extend {
		return e.Engine.Settle(ctx, s)
	}
	settled, err := e.Engine.Settle(ctx, nil)
	for i := range s {
		if err != nil {
			return nil, err
		}
		var r []engine.Settled
		if s[i].Do == engine.Extend {
			r = []engine.Settled{{Err: engine.Refuse("settle", engine.Ref{}, engine.ErrUnsupported)}}
		} else {
			r, err = e.Engine.Settle(ctx, s[i:i+1])
		}
		settled = append(settled, r...)
	}
	return settled, err
}

func (e *lesser) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	errs, err := e.Engine.Cancel(ctx, nil)
	for i := range refs {
		if err != nil {
			return nil, err
		}
		r := []error{e.refuse("cancel", refs[i], e.caps.Cancel)}
		if r[0] == nil {
			r, err = e.Engine.Cancel(ctx, refs[i:i+1])
		}
		errs = append(errs, r...)
	}
	return errs, err
}

func (e *lesser) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	if err := e.refuse("reschedule", ref, e.caps.Reschedule); err != nil {
		return engine.Info{}, err
	}
	return e.Engine.Reschedule(ctx, ref, due)
}

func (e *lesser) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	if err := e.refuse("get", ref, e.caps.Get); err != nil {
		return engine.Info{}, err
	}
	return e.Engine.Get(ctx, ref)
}

// nearlyWhole has the further interfaces too; one that is nil nobody may call.
type nearlyWhole struct {
	lesser
	engine.AtomicPusher
	engine.Claimer
	engine.Lister
	engine.Counter
	engine.Forecaster
	engine.Pauser
	engine.Purger
	engine.Redriver
}

func (e *nearlyWhole) Claim(ctx context.Context, ref engine.Ref, w engine.Want) (engine.Lease, error) {
	if err := e.refuse("claim", ref, e.caps.Claim); err != nil {
		return engine.Lease{}, err
	}
	return e.Claimer.Claim(ctx, ref, w)
}

// runLesser runs the suite on engines in memory that wrap makes less of.
func runLesser(t *testing.T, wrap func(*memengine.Engine) engine.Engine) {
	clock := enginetest.NewClock()
	enginetest.Run(t, enginetest.Harness{
		Open:      func(*testing.T) engine.Engine { return wrap(memengine.New(&memengine.Config{Now: clock.Now})) },
		Clock:     clock,
		Histories: 3,
	})
}

// The suite skips what an engine lacks, and needs nothing of it for the rest. This one
// is a bare queue, as brokers have.
func TestSuiteOnABareQueue(t *testing.T) {
	bare := func(e *memengine.Engine) engine.Engine {
		caps := e.Capabilities()
		return &lesser{e, engine.Capabilities{Name: "bare", Limits: caps.Limits}}
	}
	t.Run("injected clock", func(t *testing.T) { runLesser(t, bare) })
	t.Run("its own clock", func(t *testing.T) {
		enginetest.Run(t, enginetest.Harness{Open: func(*testing.T) engine.Engine { return bare(memengine.New(nil)) }})
	})
}

// It is the same with each capability alone.
func TestSuiteWithoutOneCapability(t *testing.T) {
	for lacks, methods := range map[string]string{
		"Keys": "", "Cancel": "", "Reschedule": "", "Get": "", "Extend": "",
		"Atomic": "AtomicPusher", "Claim": "Claimer", "List": "Lister", "Count": "Counter",
		"Forecast": "Forecaster", "Pause": "Pauser", "Purge": "Purger", "Redrive": "Redriver",
	} {
		t.Run(lacks, func(t *testing.T) {
			runLesser(t, func(e *memengine.Engine) engine.Engine {
				less := &nearlyWhole{lesser{e, e.Capabilities()}, e, e, e, e, e, e, e, e}
				reflect.ValueOf(&less.caps).Elem().FieldByName(lacks).SetBool(false)
				if methods != "" {
					reflect.ValueOf(less).Elem().FieldByName(methods).SetZero()
				}
				return less
			})
		})
	}
}
