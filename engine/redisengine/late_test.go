package redisengine

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// lateCall is a call whose request the network delays.
type lateCall struct {
	name    string
	of      *script // the request's script
	prepare func(*late) error
	call    func(*late) error
	undo    func(*late) error // what is decided next, so that the call would act once more
}

// late is a store behind a proxy that delays the request of a call.
type late struct {
	*Engine
	p     *redistest.Proxy
	token string // of the last lease
}

var lateRef = engine.Ref{Queue: "q", Key: "k"}

func (l *late) push(m engine.Message) error {
	r, err := l.Push(l.ctx, []engine.Message{m})
	if err == nil {
		err = r[0].Err
	}
	return err
}

func (l *late) lease() error {
	g, err := l.Lease(l.ctx, []engine.Want{{Queue: "q", Max: 1}})
	if err == nil {
		err = g.Queues[0].Err
	}
	if err == nil && len(g.Queues[0].Messages) == 1 {
		l.token = g.Queues[0].Messages[0].Token
	}
	return err
}

func (l *late) settle(do engine.Action, ttr time.Duration) error {
	r, err := l.Settle(l.ctx, []engine.Settlement{{Token: l.token, Do: do, When: &engine.When{}, TTR: ttr}})
	if err == nil {
		err = r[0].Err
	}
	return err
}

func (l *late) cancel() error {
	errs, err := l.Cancel(l.ctx, []engine.Ref{lateRef})
	return errors.Join(append(errs, err)...)
}

// run runs a script on the one shard of the queue.
func (l *late) run(sc *script, args ...string) error {
	return l.ask1(l.ctx, sc, l.queue("q").shards[0], args...).err
}

func lateCalls() []lateCall {
	due, later, replace, newer := plain("q", "k"), plain("q", "k"), plain("q", "k"), plain("q", "k")
	later.Due.In, replace.Due.In, newer.Due.In = time.Hour, time.Hour, time.Hour
	replace.OnConflict, newer.OnConflict, newer.Body = engine.Replace, engine.Replace, []byte("newer")
	all := func(do ...func(*late) error) func(*late) error {
		return func(l *late) error {
			for _, do := range do {
				if err := do(l); err != nil {
					return err
				}
			}
			return nil
		}
	}
	pushes := func(m engine.Message) func(*late) error { return func(l *late) error { return l.push(m) } }
	settles := func(do engine.Action, ttr time.Duration) func(*late) error {
		return func(l *late) error { return l.settle(do, ttr) }
	}
	refused := func(call func(*late) error, want error) func(*late) error {
		return func(l *late) error {
			if err := call(l); !errors.Is(err, want) {
				return errors.Join(errors.New("it is not refused"), err)
			}
			return nil
		}
	}
	configures := func(deadMax int64) func(*late) error {
		return func(l *late) error {
			_, err := l.Configure(l.ctx, "q", engine.Settings{DeadMax: deadMax}, "")
			return err
		}
	}
	moves := func(in time.Duration) func(*late) error {
		return func(l *late) error {
			_, err := l.Reschedule(l.ctx, lateRef, engine.When{In: in})
			return err
		}
	}
	pauses := func(l *late) error { return l.Pause(l.ctx, "q", 0) }
	resumes := func(l *late) error { return l.Resume(l.ctx, "q") }
	redrives := func(l *late) error { _, err := l.Redrive(l.ctx, "q", nil, 0); return err }
	leased := all(pushes(due), (*late).lease)
	return []lateCall{
		{"push", pushScript, nil, pushes(later), (*late).cancel},
		{"push without a key", pushScript, nil, pushes(plain("q", "")), all((*late).lease, settles(engine.Ack, 0))},
		{"replace", pushScript, pushes(later), pushes(replace), pushes(newer)},
		{"a refused push", pushScript, pushes(later), refused(pushes(later), engine.ErrExists), (*late).cancel},
		{"ack", settleScript, leased, settles(engine.Ack, 0), pushes(due)},
		{"retry", settleScript, leased, settles(engine.Retry, 0), (*late).lease},
		{"release", settleScript, leased, settles(engine.Release, 0), (*late).lease},
		{"bury", settleScript, leased, settles(engine.Bury, 0), redrives},
		{"extend", settleScript, leased, settles(engine.Extend, 2*time.Hour), settles(engine.Extend, 4*time.Hour)},
		{"cancel", cancelScript, pushes(later), (*late).cancel, pushes(later)},
		{"a refused cancel", cancelScript, nil, refused((*late).cancel, engine.ErrNotFound), pushes(later)},
		{"reschedule", rescheduleScript, pushes(later), moves(2 * time.Hour), moves(4 * time.Hour)},
		{"a refused reschedule", rescheduleScript, nil, refused(moves(2*time.Hour), engine.ErrNotFound), pushes(later)},
		{"redrive", redriveScript, all(leased, settles(engine.Bury, 0)), redrives, all((*late).lease, settles(engine.Bury, 0))},
		{"purge", purgeScript, pushes(later), func(l *late) error { return l.run(purgeScript, "due", "9e15", "", "") }, pushes(later)},
		{"configure", configureScript, nil, configures(3), configures(5)},
		{"pause", pauseScript, nil, pauses, resumes},
		{"resume", pauseScript, pauses, resumes, pauses},
		{"lease", leaseScript, pushes(due), (*late).lease, nil},
		{"claim", claimScript, pushes(due), func(l *late) error { _, err := l.Claim(l.ctx, lateRef, engine.Want{}); return err }, nil},
		{"clear", clearScript, pushes(later), func(l *late) error { return l.run(clearScript) }, (*late).cancel},
		{"shed", shedScript, pushes(later), func(l *late) error { return l.run(shedScript) }, (*late).cancel},
		{"ids", idsScript, nil, func(l *late) error { _, err := l.newBlock(l.ctx, l.patient()); return err }, nil},
		{"register", registerScript, nil, func(l *late) error { return l.register(l.ctx, []*queue{l.queue("other")}) }, nil},
		{"open", openScript, nil, func(l *late) error {
			defer func(prefix string) { l.prefix = prefix }(l.prefix)
			l.prefix += "again"
			_, err := l.describe(l.ctx, 1)
			return err
		}, nil},
	}
}

// withheld makes a call whose request is delayed, on a store of its own. If the script
// stores its answers, the call succeeds by a retry.
func (c *lateCall) withheld(t *testing.T, rawURL string) *late {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	p := redistest.StartProxy(t, u.Host)
	u.Host = p.Addr()
	l := &late{Engine: openStore(t, u.String(), "shards=1", "prefix="+freshPrefix()), p: p}
	does := func(do func(*late) error, must bool) {
		t.Helper()
		if do == nil {
			return
		}
		if err := do(l); err != nil && must {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	text, sha := c.of.source()
	if err := l.client.Do(l.ctx, l.client.B().ScriptLoad().Script(text).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	does(c.prepare, true)
	p.Withhold(sha)
	does(c.call, c.of.keeps)
	does(c.undo, true)
	return l
}

// deliver delivers the request, which must change nothing.
func (c *lateCall) deliver(t *testing.T, l *late) {
	t.Helper()
	is := l.contents(t)
	if !l.p.Deliver() {
		t.Fatalf("%s: nothing was withheld", c.name)
	}
	for key, value := range l.contents(t) {
		if value != is[key] {
			t.Errorf("%s: delivered late, it changed %s", c.name, key)
		}
		delete(is, key)
	}
	for key := range is {
		t.Errorf("%s: delivered late, it removed %s", c.name, key)
	}
}

// contents is all that a store keeps, but for answers, and when queues were noted, which
// goes on by itself.
func (l *late) contents(t *testing.T) map[string]string {
	t.Helper()
	keys, err := l.client.Do(t.Context(), l.client.B().Keys().Pattern(l.prefix+"*").Build()).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, key := range keys {
		if strings.Contains(key, ":answer:") || strings.HasSuffix(key, ":seen") {
			continue
		}
		if all[key], err = l.client.Do(t.Context(), l.client.B().Dump().Key(key).Build()).ToString(); err != nil {
			t.Fatal(key, err)
		}
	}
	return all
}

// TestLateRequests: a request is delivered after its call has ended by another try, and
// something else was decided. It changes nothing.
func TestLateRequests(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	for _, c := range lateCalls() {
		if c.of.keeps {
			c.deliver(t, c.withheld(t, server))
		}
	}
}

// TestRequestsTooLate: a request is delivered when nobody waits for it any more, and what
// may have been answered is forgotten. It changes nothing, whatever it asks for.
func TestRequestsTooLate(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	stores := make(map[string]*late)
	calls := lateCalls()
	for _, c := range calls {
		stores[c.name] = c.withheld(t, server)
	}
	over := time.NewTimer(2 * answerTimeout) // it is not known to the second until when they count; the server's clock is real here
	<-over.C
	for _, c := range calls {
		l := stores[c.name]
		answers, err := l.client.Do(t.Context(), l.client.B().Keys().Pattern(l.prefix+"*:answer:*").Build()).AsStrSlice()
		if err == nil && len(answers) > 0 {
			err = l.client.Do(t.Context(), l.client.B().Del().Key(answers...).Build()).Error()
		}
		if err != nil {
			t.Fatal(err)
		}
		c.deliver(t, l)
	}
}
