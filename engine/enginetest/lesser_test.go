package enginetest_test

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/memengine"
)

// lesser is an engine that can do no more than its capabilities say.
type lesser struct {
	engine.Engine
	caps engine.Capabilities
	due  sync.Map // of what was leased, by token
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
		ref := engine.Ref{Queue: msgs[i].Queue, Key: msgs[i].Key}
		if refused := cmp.Or(e.refuse("push", ref, true), e.caps.CheckTerms("push", ref, &msgs[i].Terms)); refused != nil {
			r = []engine.PushResult{{Err: refused}}
		} else {
			r, err = e.Engine.Push(ctx, msgs[i:i+1])
		}
		results = append(results, r...)
	}
	return results, err
}

// shown is what the engine shows of what another shows.
func (e *lesser) shown(i engine.Info) engine.Info {
	if !e.caps.Failures {
		i.Failures = nil
	}
	return i
}

func (e *lesser) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	wants = slices.Clone(wants)
	for i := range wants {
		e.anonymous(&wants[i])
	}
	g, err := e.Engine.Lease(ctx, wants)
	for i := range g.Queues {
		if wants[i].Remote && !e.caps.RemoteLeases {
			return engine.Grant{}, engine.Refuse("lease", engine.Ref{Queue: wants[i].Queue}, engine.ErrUnsupported)
		}
		e.note(g.Queues[i].Messages...)
	}
	return g, err
}

// anonymous removes the name from a want if the engine does not keep it.
func (e *lesser) anonymous(w *engine.Want) {
	if !e.caps.Workers {
		w.Worker, w.Takers = "", nil
	}
}

// note keeps when what is leased was due.
func (e *lesser) note(leases ...engine.Lease) {
	for _, l := range leases {
		e.due.Store(l.Token, l.Due)
	}
}

// counted makes of a settlement one that does not give the attempt back.
func (e *lesser) counted(s engine.Settlement) engine.Settlement {
	switch due, ok := e.due.Load(s.Token); {
	case s.Do == engine.Snooze:
		s.Do = engine.Retry
	case s.Do == engine.Release && ok:
		s.Do, s.When = engine.Retry, &engine.When{At: due.(time.Time)}
	}
	return s
}

func (e *lesser) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	settled, err := e.Engine.Settle(ctx, nil)
	for i := range s {
		if err != nil {
			return nil, err
		}
		var r []engine.Settled
		if s[i].Do == engine.Extend && !e.caps.Extend || s[i].Priority != nil && !e.caps.Reprioritize {
			r = []engine.Settled{{Err: engine.Refuse("settle", engine.Ref{}, engine.ErrUnsupported)}}
		} else {
			one := s[i]
			if !e.caps.GiveBack {
				one = e.counted(one)
			}
			r, err = e.Engine.Settle(ctx, []engine.Settlement{one})
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
		r := []error{cmp.Or(e.refuse("cancel", refs[i], e.caps.Cancel), e.caps.CheckRef("cancel", refs[i]))}
		if r[0] == nil {
			r, err = e.Engine.Cancel(ctx, refs[i:i+1])
		}
		errs = append(errs, r...)
	}
	return errs, err
}

func (e *lesser) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	if err := cmp.Or(e.refuse("reschedule", ref, e.caps.Reschedule), e.caps.CheckRef("reschedule", ref)); err != nil {
		return engine.Info{}, err
	}
	i, err := e.Engine.Reschedule(ctx, ref, due)
	return e.shown(i), err
}

func (e *lesser) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	if err := e.refuse("get", ref, e.caps.Get); err != nil {
		return engine.Info{}, err
	}
	i, err := e.Engine.Get(ctx, ref)
	return e.shown(i), err
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
	engine.Configurer
	engine.Peeker
	engine.Finder
}

func (e *nearlyWhole) Claim(ctx context.Context, ref engine.Ref, w engine.Want) (engine.Lease, error) {
	if err := cmp.Or(e.refuse("claim", ref, e.caps.Claim), e.caps.CheckRef("claim", ref)); err != nil {
		return engine.Lease{}, err
	}
	if w.Remote && !e.caps.RemoteLeases {
		return engine.Lease{}, engine.Refuse("claim", ref, engine.ErrUnsupported)
	}
	e.anonymous(&w)
	l, err := e.Claimer.Claim(ctx, ref, w)
	e.note(l)
	return l, err
}

func (e *nearlyWhole) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	if err := e.caps.CheckList(&q); err != nil {
		return engine.Page{}, err
	}
	page, err := e.Lister.List(ctx, q)
	for i := range page.Messages {
		page.Messages[i] = e.shown(page.Messages[i])
	}
	return page, err
}

func (e *nearlyWhole) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	for i := range msgs {
		ref := engine.Ref{Queue: msgs[i].Queue, Key: msgs[i].Key}
		if err := cmp.Or(e.refuse("push", ref, true), e.caps.CheckTerms("push", ref, &msgs[i].Terms)); err != nil {
			return nil, err
		}
	}
	return e.AtomicPusher.PushAtomic(ctx, msgs)
}

func (e *nearlyWhole) Configure(ctx context.Context, queue string, s engine.Settings, revision string) (string, error) {
	if err := e.caps.CheckTerms("configure", engine.Ref{Queue: queue}, &s.Defaults); err != nil {
		return "", err
	}
	return e.Configurer.Configure(ctx, queue, s, revision)
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
		return &lesser{Engine: e, caps: engine.Capabilities{Name: "bare", Limits: caps.Limits}}
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
		"Settings": "Configurer", "Remember": "", "Isolate": "", "Range": "", "IfState": "",
		"Priority": "", "Expiry": "", "GiveBack": "", "RemoteLeases": "",
		"Failures": "", "Workers": "",
		"ClaimIf": "", "Peek": "Peeker", "Find": "Finder", "Reprioritize": "",
	} {
		t.Run(lacks, func(t *testing.T) {
			runLesser(t, func(e *memengine.Engine) engine.Engine {
				less := &nearlyWhole{lesser{Engine: e, caps: e.Capabilities()}, e, e, e, e, e, e, e, e, e, e, e}
				reflect.ValueOf(&less.caps).Elem().FieldByName(lacks).SetBool(false)
				if methods != "" {
					reflect.ValueOf(less).Elem().FieldByName(methods).SetZero()
				}
				return less
			})
		})
	}
}
