package diskengine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// outage is a store that loses its power, and is killed, at one of its writes.
type outage struct {
	*Engine
	clock  *enginetest.Clock
	writes atomic.Int64
	at     int64                         // which of them it is; 0: none
	clones atomic.Pointer[[2]*vfs.MemFS] // nil: that write is still to come
	ids    []engine.ID                   // of messages buried
	tokens []string                      // of leases
}

func openOutage(t *testing.T, mem *vfs.MemFS, clock *enginetest.Clock, at int64) *outage {
	t.Helper()
	o := &outage{clock: clock, at: at}
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && o.writes.Add(1) == o.at {
			o.clones.Store(&[2]*vfs.MemFS{
				mem.CrashClone(vfs.CrashCloneCfg{}),
				mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}),
			})
		}
		return nil
	}))
	var err error
	if o.Engine, err = Open("data", &Config{FS: fs, Now: clock.Now, Logger: quietLog, MinFreeBytes: -1, BallastBytes: -1, MemTableBytes: 64 << 10, CacheBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	return o
}

// whole fails the test unless all queues hold together.
func (o *outage) whole(t *testing.T, when string) {
	t.Helper()
	for _, q := range o.queues() {
		o.lookAfter(q) // ends the leases of a process that has ended
		if err := survey(q); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
}

// outageQueues are the queues of an outage.
var outageQueues = []string{"a", "b", "c"}

// lease leases from all queues at once, for this process and for others.
func (o *outage) lease(t *testing.T, most int, ttr time.Duration) (tokens []string, err error) {
	var wants []engine.Want
	for i, name := range outageQueues {
		wants = append(wants, engine.Want{Queue: name, Max: most, TTR: ttr, Remote: i != 1})
	}
	g, err := o.Lease(t.Context(), wants)
	for _, q := range g.Queues {
		for _, l := range q.Messages {
			tokens = append(tokens, l.Token)
			o.ids = append(o.ids, l.ID)
		}
	}
	return tokens, err
}

// settle settles what has been leased, each with the next of some actions.
func (o *outage) settle(t *testing.T, tokens []string, do ...engine.Action) error {
	s := make([]engine.Settlement, len(tokens))
	for i := range s {
		s[i] = engine.Settlement{Token: tokens[i], Do: do[i%len(do)], When: &engine.When{In: time.Second}}
	}
	_, err := o.Settle(t.Context(), s)
	return err
}

// outageSteps are what an outage does, a call or two each.
func outageSteps() (steps []func(t *testing.T, o *outage) error) {
	push := func(from, n int, c engine.Conflict, atomic bool) func(t *testing.T, o *outage) error {
		return func(t *testing.T, o *outage) error {
			var msgs []engine.Message
			for i := from; i < from+n; i++ {
				m := fleeting(fmt.Sprint(i), 0, time.Duration(i%3)*time.Minute)
				m.Queue, m.OnConflict, m.MaxAttempts = outageQueues[i%3], c, uint32(1+i%2)
				if m.Body = make([]byte, 1+i%2*2*inlineBody); i%5 == 4 {
					m.ExpireAfter = time.Minute
				}
				msgs = append(msgs, m)
			}
			if atomic {
				_, _ = o.PushAtomic(t.Context(), msgs)
				return nil
			}
			_, err := o.Push(t.Context(), msgs)
			return err
		}
	}
	handle := func(most int, do ...engine.Action) func(t *testing.T, o *outage) error {
		return func(t *testing.T, o *outage) error {
			tokens, err := o.lease(t, most, time.Hour)
			if err != nil {
				return err
			}
			return o.settle(t, tokens, do...)
		}
	}
	configure := func(s engine.Settings) func(t *testing.T, o *outage) error {
		return func(t *testing.T, o *outage) error {
			for _, name := range outageQueues[:2] {
				if _, err := o.Configure(t.Context(), name, s, ""); err != nil {
					return err
				}
			}
			return nil
		}
	}
	hold := func(t *testing.T, o *outage) (err error) {
		o.tokens, err = o.lease(t, 2, time.Minute)
		return err
	}
	late := func(t *testing.T, o *outage) error {
		return o.settle(t, o.tokens, engine.Ack, engine.Release, engine.Retry, engine.Extend)
	}
	wait := func(d time.Duration) func(t *testing.T, o *outage) error {
		return func(t *testing.T, o *outage) error { o.clock.Advance(d); return nil }
	}
	cancel := func(t *testing.T, o *outage) error {
		var refs []engine.Ref
		for i := range 9 {
			refs = append(refs, engine.Ref{Queue: outageQueues[i%3], Key: fmt.Sprint(i)})
		}
		_, err := o.Cancel(t.Context(), refs)
		return err
	}
	redrive := func(t *testing.T, o *outage) error {
		for _, name := range outageQueues {
			if _, err := o.Redrive(t.Context(), name, o.ids, 0); err != nil {
				return err
			}
		}
		return nil
	}
	purge := func(also engine.PurgeAlso) func(t *testing.T, o *outage) error {
		return func(t *testing.T, o *outage) error {
			_, err := o.Purge(t.Context(), "a", also)
			return err
		}
	}
	claim := func(t *testing.T, o *outage) error {
		_, _ = o.Claim(t.Context(), engine.Ref{Queue: "c", Key: "20"}, engine.Want{Remote: true})
		return nil
	}
	return []func(t *testing.T, o *outage) error{
		push(0, 18, engine.Reject, false), handle(2, engine.Ack, engine.Bury), cancel,
		configure(engine.Settings{DeadMax: 1, Defaults: engine.Terms{Remember: time.Minute}}),
		push(0, 12, engine.Replace, true), handle(9, engine.Bury, engine.Ack), redrive, hold,
		push(18, 12, engine.Keep, false), claim, wait(2 * time.Minute), late,
		configure(engine.Settings{DeadKeep: time.Minute, InFlight: 2, Rate: 10}), handle(9, engine.Retry, engine.Bury, engine.Snooze),
		push(6, 12, engine.Rearm, true), wait(2 * time.Minute), handle(9, engine.Ack), purge(engine.PurgeFinished),
		configure(engine.Settings{}), push(0, 9, engine.KeepDue, false), handle(9, engine.Release, engine.Bury), wait(-3 * time.Minute), cancel,
		redrive, purge(engine.PurgeDead | engine.PurgeFinished), push(0, 6, engine.Keep, true),
	}
}

// logical is what the disk holds of messages, keys and settings.
func logical(t *testing.T, e *Engine) string {
	t.Helper()
	var all strings.Builder
	if err := scan(e.store.db, nil, nil, func(k, v []byte) (bool, error) {
		switch k[0] {
		case kindMark, kindQueue, kindIDs, kindMinute:
		default:
			fmt.Fprintf(&all, "%q %q\n", k, v)
		}
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestOutages has a store that uses settings, remembered keys and calls of many queues lose
// its power, or be killed, at every third of its writes, and then once more at some write
// of what follows its opening: each time all holds together.
func TestOutages(t *testing.T) {
	steps := outageSteps()
	same := 0
	for at, through := int64(1), false; !through; at += 3 {
		clock := enginetest.NewClock()
		o := openOutage(t, vfs.NewCrashableMem(), clock, at)
		var before, after string
		var then time.Time
		for i, step := range steps {
			if o.clones.Load() == nil {
				before, then = logical(t, o.Engine), clock.Now()
			}
			hit := o.clones.Load() != nil
			if err := step(t, o); err != nil {
				t.Fatalf("write %d, step %d: %v", at, i, err)
			}
			if at == 1 {
				o.whole(t, fmt.Sprintf("step %d", i))
			}
			if o.clones.Load() != nil && !hit {
				after = logical(t, o.Engine)
			}
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		through = o.clones.Load() == nil
		if i := int(at) % 2; !through {
			clone, clock := o.clones.Load()[i], enginetest.NewClock()
			clock.Set(then)
			second := openOutage(t, clone, clock, 1+at%17)
			if is := logical(t, second.Engine); is == before || is == after {
				same++
			}
			second.whole(t, fmt.Sprintf("write %d, clone %d", at, i))
			clock.Advance(time.Minute)
			for _, step := range steps[:3] {
				if err := step(t, second); err != nil {
					t.Fatal(err)
				}
			}
			second.whole(t, fmt.Sprintf("write %d, clone %d, and on", at, i))
			if err := second.Close(); err != nil {
				t.Fatal(err)
			}
			if j := int(at) / 2 % 2; second.clones.Load() != nil {
				clone := second.clones.Load()[j]
				third := openOutage(t, clone, clock, 0)
				third.whole(t, fmt.Sprintf("write %d, clone %d, then write %d, clone %d", at, i, second.at, j))
				if err := third.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if through {
			t.Logf("%d writes, %d times as before or after a step", at-1, same)
			if same < int(at)/9 {
				t.Error("a call that is not answered leaves neither what was before nor what is after")
			}
		}
	}
}
