package redisengine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestLostAnswersAreAskedForAgain loses the answer of each call that changes something,
// and has others act upon what it did before it is asked for again. It must say what it
// did, and act no more.
func TestLostAnswersAreAskedForAgain(t *testing.T) {
	t.Parallel()
	key := engine.Ref{Queue: "q", Key: "k"}
	settle := func(do engine.Action, state engine.State) func(*testing.T, *Engine, string) error {
		return func(t *testing.T, e *Engine, token string) error {
			s, err := e.Settle(t.Context(), []engine.Settlement{{Token: token, Do: do, When: &engine.When{}}})
			if err == nil && (s[0].Err != nil || s[0].State != state) {
				err = fmt.Errorf("%+v", s[0])
			}
			return err
		}
	}
	handled := func(t *testing.T, e *Engine) { // someone leases and acks it
		l := lease1(t, e, "q")
		if s := settle1(t, e, engine.Settlement{Token: l.Token, Do: engine.Ack}); s.Err != nil {
			t.Error(s.Err)
		}
	}
	pushed := func(t *testing.T, e *Engine) { push(t, e, plain("q", "k")) }
	is := func(n func(engine.QueueInfo) int64) func(engine.QueueInfo) bool {
		return func(i engine.QueueInfo) bool { return n(i) > 0 }
	}
	ready := is(func(i engine.QueueInfo) int64 { return i.Ready })
	dead := is(func(i engine.QueueInfo) int64 { return i.Dead })
	empty := func(i engine.QueueInfo) bool { return i.Scheduled+i.Ready+i.Leased+i.Dead == 0 }
	for _, c := range []struct {
		name    string
		prepare func(*testing.T, *Engine) (token string)
		call    func(*testing.T, *Engine, string) error
		done    func(engine.QueueInfo) bool // what it looks like when the call has been carried out
		then    func(*testing.T, *Engine)   // what others do upon that
		left    func(engine.QueueInfo) bool
	}{
		{"push", nil, func(t *testing.T, e *Engine, _ string) error {
			r, err := e.Push(t.Context(), []engine.Message{plain("q", "k")})
			if err == nil && (r[0].Err != nil || r[0].Outcome != engine.Created || r[0].State != engine.Ready) {
				err = fmt.Errorf("%+v", r[0])
			}
			return err
		}, ready, handled, empty},
		{"ack", leased, settle(engine.Ack, engine.Gone), empty, pushed, ready},
		{"retry", leased, settle(engine.Retry, engine.Ready), ready, handled, empty},
		{"release", leased, settle(engine.Release, engine.Ready), ready, handled, empty},
		{"bury", leased, settle(engine.Bury, engine.Dead), dead, func(*testing.T, *Engine) {}, dead},
		{"cancel", scheduled, func(t *testing.T, e *Engine, _ string) error {
			errs, err := e.Cancel(t.Context(), []engine.Ref{key})
			return errors.Join(append(errs, err)...)
		}, empty, pushed, ready},
		{"reschedule", scheduled, func(t *testing.T, e *Engine, _ string) error {
			i, err := e.Reschedule(t.Context(), key, engine.When{})
			if err == nil && i.State != engine.Ready {
				err = fmt.Errorf("%+v", i)
			}
			return err
		}, ready, handled, empty},
		{"redrive", func(t *testing.T, e *Engine) string {
			settle1(t, e, engine.Settlement{Token: leased(t, e), Do: engine.Bury})
			return ""
		}, func(t *testing.T, e *Engine, _ string) error {
			n, err := e.Redrive(t.Context(), "q", nil, 0)
			if err == nil && (n != engine.Redriven{Redriven: 1}) {
				err = fmt.Errorf("%+v", n)
			}
			return err
		}, ready, handled, empty},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := redistest.StartProxy(t, s.Addr())
			e, beside := openPatient(t, p.URL()), openStore(t, s.URL())
			everyCall(t, e, func() {}) // the server knows the scripts
			if c.prepare == nil {
				c.prepare = func(*testing.T, *Engine) string { return "" }
			}
			token := c.prepare(t, e)
			if c.name == "redrive" { // it lists the dead first, which is not what to lose
				if _, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Dead, Limit: 1}); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan error, 1)
			p.DropReplies(c.name != "redrive")
			if c.name == "redrive" {
				p.LoseAnswer(2)
			}
			go func() { ended <- c.call(t, e, token) }()
			eventually(t, "the call to be carried out", func() bool {
				i, err := beside.Queue(t.Context(), "q")
				if err != nil {
					t.Fatal(err)
				}
				return c.done(i)
			})
			if c.name != "redrive" {
				c.then(t, beside)
				p.Cut()
			}
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(longWait):
				t.Fatal("the call does not end")
			}
			if c.name == "redrive" {
				c.then(t, beside)
			}
			i, err := beside.Queue(t.Context(), "q")
			if err != nil || !c.left(i) {
				t.Errorf("%+v, %v is left", i, err)
			}
		})
	}
}

// TestLostAnswerStaysInDoubt: if the answer is lost and no retry reaches a server, the error
// says that the outcome is unknown.
func TestLostAnswerStaysInDoubt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr())
	e, beside := openStore(t, p.URL()), openStore(t, s.URL())
	if _, err := e.Configure(t.Context(), "q", engine.Settings{DeadMax: 1}, ""); err != nil { // the server knows the script
		t.Fatal(err)
	}
	p.DropReplies(true)
	ended := make(chan error, 1)
	go func() {
		_, err := e.Configure(t.Context(), "q", engine.Settings{DeadMax: 2}, "")
		ended <- err
	}()
	eventually(t, "the settings to be written", func() bool {
		is, _, err := beside.Settings(t.Context(), "q")
		return err == nil && is.DeadMax == 2
	})
	p.Refuse(true)
	p.Cut()
	fails(t, <-ended, engine.ErrUnavailable, engine.HintUnknown)
	p.Refuse(false)
}

// leased pushes and leases a message.
func leased(t *testing.T, e *Engine) (token string) {
	push(t, e, plain("q", "k"))
	return lease1(t, e, "q").Token
}

// scheduled pushes a message that is due later.
func scheduled(t *testing.T, e *Engine) (token string) {
	m := plain("q", "k")
	m.Due.In = time.Hour
	push(t, e, m)
	return ""
}

// TestAnswersAreForgotten: what scripts keep in case an answer is lost goes by itself.
func TestAnswersAreForgotten(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL())
	push(t, e, plain("q", "k"))
	m := s.Do("KEYS", "tarry:*:answer:*")
	keys, err := m.AsStrSlice()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys %q, %v", keys, err)
	}
	m = s.Do("PTTL", keys[0])
	kept := time.Duration(0)
	if ms, err := m.AsInt64(); err == nil {
		kept = time.Duration(ms) * time.Millisecond
	}
	if kept <= 0 || kept > 10*time.Second || kept < patience {
		t.Errorf("an answer is kept for %v, and asked for within %v", kept, patience+answerTimeout)
	}
}

// TestTakenIDs: an engine allocates ids that are in use, as after a failover that lost them
// to a server whose clock is behind. No message is overwritten.
func TestTakenIDs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	one, other := openStore(t, s.URL()), openStore(t, s.URL())
	first := plain("q", "first")
	first.Due.In = time.Hour
	was := push(t, one, first, plain("q", ""), plain("q", ""))
	lease1 := leaseAll(t, one, "q")
	push(t, other, plain("other", ""))
	other.ids.block, other.ids.used = blockOf(was[0].ID), 0
	is := push(t, other, plain("q", "a"), plain("q", "b"), plain("q", "c"), plain("q", "d"))
	seen := map[engine.ID]bool{}
	for _, r := range append(was, is...) {
		if seen[r.ID] || r.Outcome != engine.Created {
			t.Errorf("%+v, and others %v", r, seen)
		}
		seen[r.ID] = true
	}
	for key, r := range map[string]engine.PushResult{"first": was[0], "a": is[0], "b": is[1], "c": is[2], "d": is[3]} {
		i, err := one.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
		if err != nil || i.ID != r.ID || !strings.HasSuffix(string(i.Body), key) {
			t.Errorf("%q is %+v, %v", key, i, err)
		}
	}
	for _, l := range lease1 {
		if s := settle1(t, one, engine.Settlement{Token: l.Token, Do: engine.Ack}); s.Err != nil {
			t.Error(s.Err)
		}
	}
	var e *tarry.Error
	other.ids.block, other.ids.used = blockOf(was[0].ID), 0
	r, err := other.push(t.Context(), []engine.Message{plain("q", "e")}, 1)
	if err != nil || !errors.As(r[0].Err, &e) || !errors.Is(e, engine.ErrUnavailable) {
		t.Errorf("with no try left: %+v, %v", r, err)
	}
}
