package redisengine

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// mostCommands is how many commands one script may run, whatever has gathered: about
// 20 ms of a server that all share.
const mostCommands = 16 * scriptMessages

// monitor hears every command that a server runs, which makes that many times slower.
type monitor struct {
	t     *testing.T
	s     *redistest.Server
	conn  net.Conn
	lines *bufio.Scanner
	n     int
}

func newMonitor(t *testing.T, s *redistest.Server) *monitor {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	m := &monitor{t: t, s: s, conn: conn, lines: bufio.NewScanner(conn)}
	m.lines.Buffer(nil, 64<<20)
	if m.lines.Scan(); m.lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %q, %v", m.lines.Text(), m.lines.Err())
	}
	return m
}

// end lets the server go on unheard.
func (m *monitor) end() { _ = m.conn.Close() }

// scripts returns how many commands each script has run since it was last asked.
func (m *monitor) scripts() (counts []int) {
	m.t.Helper()
	m.n++
	mark := fmt.Sprintf(`"ECHO" "mark-%d"`, m.n)
	m.s.Do("ECHO", fmt.Sprint("mark-", m.n))
	for m.lines.Scan() { // as in: +1700000000.123456 [0 lua] "HGET" "key" …
		_, line, _ := strings.Cut(m.lines.Text(), " [")
		from, command, ok := strings.Cut(line, "] ")
		switch {
		case !ok:
			m.t.Fatalf("MONITOR said %.100q", m.lines.Text())
		case strings.HasSuffix(from, " lua"):
			counts[len(counts)-1]++
		case strings.HasPrefix(command, `"EVAL`):
			counts = append(counts, 0)
		case command == mark:
			return counts
		}
	}
	m.t.Fatalf("MONITOR ended: %v", m.lines.Err())
	return nil
}

// most fails the test if a script has run too many commands, and returns the most.
func (m *monitor) most(what string) (worst int) {
	m.t.Helper()
	sum := 0
	counts := m.scripts()
	for _, n := range counts {
		worst, sum = max(worst, n), sum+n
	}
	m.t.Logf("%s: %d scripts, %d commands, at most %d in one", what, len(counts), sum, worst)
	if worst > mostCommands {
		m.t.Errorf("%s: one script ran %d commands, more than %d", what, worst, mostCommands)
	}
	return worst
}

// TestNoScriptDoesMuch: whatever has gathered in a shard, no call of the engine makes a
// script that works through all of it.
func TestNoScriptDoesMuch(t *testing.T) {
	t.Parallel()
	const n = scriptMessages + scriptMessages/10 // more than one script does
	s := redistest.Start(t)
	clock := enginetest.NewClock()
	usual := func(i int) engine.Message {
		m := plain("q", fmt.Sprint("k", i))
		m.MaxAttempts = 2
		return m
	}
	rare := func(i int) engine.Message {
		m := usual(i)
		m.Priority = new(uint32(i % 7))
		return m
	}
	expiring := func(i int) engine.Message {
		m := usual(i)
		m.ExpireAfter = time.Minute
		return m
	}
	last := func(i int) engine.Message {
		m := expiring(i)
		m.ExpireAfter, m.MaxAttempts = 24*time.Hour, 1
		return m
	}
	swept := func(e *Engine) { // moves due messages to READY
		if _, err := e.Queue(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
	}
	lease := func(e *Engine) { leaseAll(t, e, "q") }
	lapse := func(e *Engine) { lease(e); clock.Advance(2 * time.Hour) }
	expire := func(e *Engine) { swept(e); clock.Advance(2 * time.Minute) }
	die := func(e *Engine) { lapse(e); swept(e) }
	type state struct {
		name string
		msg  func(i int) engine.Message
		make func(e *Engine)
	}
	expired := state{"expired", expiring, expire}
	gone := state{"lapsed and expired", expiring, lapse}
	prepare := func(of state, shards int) *Engine {
		e := openPatient(t, s.URL(), "prefix="+freshPrefix(), fmt.Sprint("shards=", shards))
		e.stopped = clock.Now
		var msgs []engine.Message
		for i := range n * shards {
			msgs = append(msgs, of.msg(i))
		}
		push(t, e, msgs...)
		of.make(e)
		return e
	}
	lease1 := func(of state, shards int) {
		e := prepare(of, shards)
		m := newMonitor(t, s)
		defer m.end()
		for i := 0; ; i++ {
			g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1}})
			if err != nil || g.Queues[0].Err != nil {
				t.Fatal(err, g.Queues[0].Err)
			}
			if len(g.Queues[0].Messages) > 0 || !g.Queues[0].More {
				break
			}
			if i > 10 {
				t.Fatalf("%s: there is more for ever", of.name)
			}
		}
		m.most(fmt.Sprintf("%s, %d shards: lease one", of.name, shards))
		lease(e)
		m.most(fmt.Sprintf("%s, %d shards: lease all", of.name, shards))
	}
	for _, of := range []state{
		expired, gone,
		{"ready", usual, swept},
		{"rare, due", rare, func(*Engine) {}},
		{"rare, in their turn", rare, swept},
		{"after the clock has stepped back", rare, func(e *Engine) { swept(e); clock.Advance(-time.Hour) }},
		{"lapsed", rare, lapse},
		{"spent", last, lapse},
		{"without their records", rare, func(e *Engine) { swept(e); s.Do("DEL", e.queue("q").shards[0].keys[6]) }},
	} {
		lease1(of, 1)
	}
	lease1(expired, 2)
	for _, c := range []struct {
		name string
		of   state
		call func(e *Engine) error
	}{
		{"queue", gone, func(e *Engine) error { _, err := e.Queue(t.Context(), "q"); return err }},
		{"forecast", gone, func(e *Engine) error {
			_, err := e.Forecast(t.Context(), "q", time.Minute, 10_000*time.Minute)
			return err
		}},
		{"list", expired, func(e *Engine) error {
			_, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Ready, Limit: engine.MaxPage, Body: true})
			return err
		}},
		{"peek", expired, func(e *Engine) error { _, err := e.Peek(t.Context(), []string{"q"}); return err }},
		{"peek", gone, func(e *Engine) error { _, err := e.Peek(t.Context(), []string{"q"}); return err }},
		{"find", gone, func(e *Engine) error {
			page, err := e.places(t.Context(), e.queue("q"), engine.Leased, codec.WholeList, false, 10*n)
			ids := make([]engine.ID, len(page))
			for i := range page {
				ids[i] = page[i].ID
			}
			if err == nil {
				_, err = e.Find(t.Context(), ids)
			}
			return err
		}},
		{"purge", expired, func(e *Engine) error { _, err := e.Purge(t.Context(), "q", engine.PurgeDead); return err }},
		{"purge of the dead", state{"dead", last, die}, func(e *Engine) error { _, err := e.Purge(t.Context(), "q", engine.PurgeDead); return err }},
		{"redrive", state{"dead", last, die}, func(e *Engine) error { _, err := e.Redrive(t.Context(), "q", nil, 0); return err }},
		{"replace", expired, func(e *Engine) error {
			msgs := make([]engine.Message, n)
			for i := range msgs {
				msgs[i] = rare(i)
				msgs[i].OnConflict = engine.Replace
			}
			_, err := e.Push(t.Context(), msgs)
			return err
		}},
		{"cancel", expired, func(e *Engine) error {
			refs := make([]engine.Ref, n)
			for i := range refs {
				refs[i] = engine.Ref{Queue: "q", Key: fmt.Sprint("k", i)}
			}
			_, err := e.Cancel(t.Context(), refs)
			return err
		}},
	} {
		e := prepare(c.of, 1)
		m := newMonitor(t, s)
		if err := c.call(e); err != nil {
			t.Fatal(c.name, err)
		}
		m.most(c.of.name + ": " + c.name)
		m.end()
	}
}

// TestNoScriptDoesMuchForOneHeldBack: when the last that may be leased was found just as a
// script had met enough of what has expired.
func TestNoScriptDoesMuchForOneHeldBack(t *testing.T) {
	t.Parallel()
	const enough, n = 500, 1500 // CHUNK of lua/shard.lua
	s := redistest.Start(t)
	clock := enginetest.NewClock()
	e := openPatient(t, s.URL(), "shards=1")
	e.stopped = clock.Now
	if _, err := e.Configure(t.Context(), "q", engine.Settings{InFlight: 1}, ""); err != nil {
		t.Fatal(err)
	}
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = plain("q", "")
		if i != enough {
			msgs[i].ExpireAfter = time.Minute
		}
	}
	push(t, e, msgs...)
	if _, err := e.Queue(t.Context(), "q"); err != nil { // moves due messages to READY
		t.Fatal(err)
	}
	clock.Advance(2 * time.Minute)
	m := newMonitor(t, s)
	defer m.end()
	if got := leaseAll(t, e, "q"); len(got) != 1 {
		t.Fatalf("%d are leased", len(got))
	}
	if worst := m.most("the last that may be leased"); worst > mostCommands/2 {
		t.Errorf("one script ran %d commands", worst)
	}
}

// TestNothingWaitsForWhatGoesUnseen: a lease returns what is ready, however many dead
// messages and memories are to be dropped. Further leases drop them, a bounded number per
// script.
func TestNothingWaitsForWhatGoesUnseen(t *testing.T) {
	t.Parallel()
	const n = 1200 // more than two scripts drop
	s := redistest.Start(t)
	clock := enginetest.NewClock()
	e := openPatient(t, s.URL(), "shards=1")
	e.stopped = clock.Now
	if _, err := e.Configure(t.Context(), "q", engine.Settings{DeadKeep: time.Minute}, ""); err != nil {
		t.Fatal(err)
	}
	msgs := make([]engine.Message, 2*n)
	for i := range msgs {
		msgs[i] = plain("q", fmt.Sprint(i))
		msgs[i].Remember = time.Minute
	}
	push(t, e, msgs...)
	var back []engine.Settlement
	for i, l := range leaseAll(t, e, "q") {
		back = append(back, engine.Settlement{Token: l.Token, Do: []engine.Action{engine.Ack, engine.Bury}[i%2]})
	}
	if _, err := e.Settle(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if i, err := e.Queue(t.Context(), "q"); err != nil || i.Dead != n || i.Finished != n {
		t.Fatal(i, err)
	}
	clock.Advance(time.Hour)
	push(t, e, plain("q", "ready"))
	m := newMonitor(t, s)
	defer m.end()
	if g := enginetest.MustLease(t, e, "q", 1); len(g.Messages) != 1 || !g.More {
		t.Fatalf("%+v", g)
	}
	if scripts := m.scripts(); len(scripts) != 1 {
		t.Errorf("a message that is ready takes %d scripts", len(scripts))
	}
	leaseAll(t, e, "q")
	if worst := m.most("dropping"); worst > mostCommands/2 {
		t.Errorf("one script ran %d commands", worst)
	}
	for _, key := range []string{"dead", "grave", "finished"} {
		left := s.Do("ZCARD", "tarry:{q.0}:"+key)
		if n, err := left.AsInt64(); err != nil || n != 0 {
			t.Errorf("%d are left in %s, %v", n, key, err)
		}
	}
}

// TestAcksOfRememberedGather: they are as few commands as others, but for what is
// remembered.
func TestAcksOfRememberedGather(t *testing.T) {
	t.Parallel()
	const n = 500
	s := redistest.Start(t)
	e := openPatient(t, s.URL(), "shards=1")
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = plain("q", fmt.Sprint(i))
		if i%10 > 0 {
			msgs[i].Remember = time.Hour
		}
	}
	results := push(t, e, msgs...)
	var back []engine.Settlement
	for _, l := range leaseAll(t, e, "q") {
		back = append(back, engine.Settlement{Token: l.Token, Do: engine.Ack})
	}
	// A message with a damaged record leaves no memory.
	s.Do("HSET", "tarry:{q.0}:msg", member(results[1].ID), "\x04")
	m := newMonitor(t, s)
	defer m.end()
	settled, err := e.Settle(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	for i := range settled {
		if settled[i].Err != nil {
			t.Fatal(settled[i].Err)
		}
	}
	if worst := m.most("acks"); worst > 30 {
		t.Errorf("%d acks were %d commands", len(back), worst)
	}
	if i, err := e.Queue(t.Context(), "q"); err != nil || i != (engine.QueueInfo{Queue: "q", Finished: n - n/10 - 1}) {
		t.Errorf("%+v, %v", i, err)
	}
	push(t, e, msgs[0], msgs[1]) // their keys are free
}

// TestSettlingMuchLate: settlements of leases that are over cost the most.
func TestSettlingMuchLate(t *testing.T) {
	t.Parallel()
	const n = scriptMessages
	s := redistest.Start(t)
	clock := enginetest.NewClock()
	for _, do := range []engine.Action{engine.Ack, engine.Retry, engine.Extend} {
		e := openPatient(t, s.URL(), "prefix="+freshPrefix())
		e.stopped = clock.Now
		msgs := make([]engine.Message, n)
		for i := range msgs {
			msgs[i] = plain("q", fmt.Sprint("k", i))
			msgs[i].MaxAttempts, msgs[i].ExpireAfter = 1, time.Minute
		}
		push(t, e, msgs...)
		var back []engine.Settlement
		for _, l := range leaseAll(t, e, "q") {
			back = append(back, engine.Settlement{Token: l.Token, Do: do, When: &engine.When{}, Priority: new(uint32(7))})
		}
		clock.Advance(2 * time.Hour)
		m := newMonitor(t, s)
		settled, err := e.Settle(t.Context(), back)
		if err != nil || len(settled) != n || settled[n-1].Err != nil {
			t.Fatal(err, settled[n-1].Err)
		}
		m.most(fmt.Sprint("settlement ", do))
		m.end()
	}
}

// TestLeaseOfMany: a want for more than one script hands out gets all, in parts.
func TestLeaseOfMany(t *testing.T) {
	t.Parallel()
	const n = 4500 // more values than a script can put into one command
	e := openPatient(t, redistest.Start(t).URL())
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = plain("q", "")
	}
	push(t, e, msgs...)
	for got := 0; got < n; {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 2 * n}})
		if err != nil || g.Queues[0].Err != nil || len(g.Queues[0].Messages) == 0 {
			t.Fatalf("%v, %v, %d messages", err, g.Queues[0].Err, len(g.Queues[0].Messages))
		}
		if got += len(g.Queues[0].Messages); g.Queues[0].More != (got < n) {
			t.Fatalf("after %d of %d, more is %v", got, n, g.Queues[0].More)
		}
	}
}
