package memengine

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Whatever happened before, the queue's orders agree with each other.
func TestOrdersAgree(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	e, c := newEngine(t)
	var tokens []string
	for range 3000 {
		key := fmt.Sprint(rng.IntN(40))
		ref := engine.Ref{Queue: "q", Key: key}
		d := time.Duration(rng.IntN(400)-50) * time.Second
		switch rng.IntN(9) {
		case 0, 1, 2:
			m := msg("q", key, d)
			m.OnConflict = engine.Conflict(rng.IntN(5))
			m.Priority = new(rng.Uint32N(3))
			m.ExpireAfter = time.Duration(rng.IntN(2)*rng.IntN(200)) * time.Second
			m.Remember = time.Duration(rng.IntN(2)*rng.IntN(200)) * time.Second
			m.MaxAttempts = uint32(1 + rng.IntN(3))
			if _, err := e.Push(t.Context(), []engine.Message{m}); err != nil {
				t.Fatal(err)
			}
		case 3:
			for _, l := range lease(t, e, "q", 1+rng.IntN(5)).Messages {
				tokens = append(tokens, l.Token)
			}
		case 4:
			if len(tokens) > 0 {
				do := engine.Action(1 + rng.IntN(6))
				settle(t, e, engine.Settlement{Token: tokens[rng.IntN(len(tokens))], Do: do, When: &engine.When{In: d}})
			}
		case 5:
			_, err := e.Cancel(t.Context(), []engine.Ref{ref})
			if err != nil {
				t.Fatal(err)
			}
		case 6:
			_, _ = e.Reschedule(t.Context(), ref, engine.When{In: d}) // often there is nothing
			if rng.IntN(10) == 0 {
				if _, err := e.Redrive(t.Context(), "q", nil, 3); err != nil {
					t.Fatal(err)
				}
			}
		case 7:
			s := engine.Settings{DeadKeep: time.Duration(rng.IntN(3)*rng.IntN(200)) * time.Second, DeadMax: int64(rng.IntN(6)), InFlight: int64(rng.IntN(5)), Rate: float64(rng.IntN(2)),
				History: time.Duration(rng.IntN(3)*rng.IntN(200)) * time.Second, HistoryMax: int64(rng.IntN(20))}
			if _, err := e.Configure(t.Context(), "q", s, ""); err != nil {
				t.Fatal(err)
			}
		case 8:
			c.Advance(time.Duration(rng.IntN(60)-5) * time.Second)
		}
		if q := e.queues["q"]; q != nil {
			check(t, e, q)
		}
	}
}

// check compares the orders of a queue, which is the engine's only one.
func check(t *testing.T, e *Engine, q *queue) {
	t.Helper()
	var n [engine.Finished + 1]int
	var expiring, deadKeyed, past int
	var ready []turn
	for place := range uint32(len(q.msgs.chunks) * perChunk) {
		m := q.msgs.look(place + 1)
		if m == nil || m.id == 0 {
			continue
		}
		if m.inHistory {
			past++
			if m.place != place+1 || q.byID(m.id) != m || m.live || !q.lists(m) {
				t.Fatalf("%d is listed as finished, but not found by its id, live, or too old", m.id)
			}
			continue
		}
		n[m.state]++
		if m.state == engine.Finished {
			if m.place != place+1 || q.keyed(m.key()) != m || q.byKey(m.key()) != nil || m.live || m.end <= q.ms {
				t.Fatalf("%d is not remembered by its key alone, or beyond its time", m.id)
			}
			continue
		}
		if m.place != place+1 || q.byID(m.id) != m {
			t.Fatalf("%d is not where it says, or is not found", m.id)
		}
		if m.state == engine.Dead && !q.stays(m) {
			t.Fatalf("%d is dead, longer than it may be", m.id)
		}
		if m.live != m.state.Live() || m.live != (q.byKey(m.key()) == m) {
			t.Fatalf("%d is %v: live %v, holds its key %v", m.id, m.state, m.live, q.byKey(m.key()) == m)
		}
		if (m.state == engine.Scheduled || m.state == engine.Ready) && m.expires() != none {
			expiring++
		}
		if m.state == engine.Ready {
			ready = append(ready, turnOf(m))
		}
	}
	slices.SortFunc(ready, byTurn)
	if len(ready) > 0 {
		oldest := slices.MinFunc(ready, func(a, b turn) int { return cmp.Compare(a.due, b.due) }).due
		if first := turnOf(q.nextReady()); first != ready[0] {
			t.Fatalf("the first is %+v, want %+v", first, ready[0])
		}
		if rand.IntN(20) == 0 && q.oldest() != oldest { // seldom: it tidies
			t.Fatalf("the oldest due is %d, want %d", q.oldest(), oldest)
		}
	} else if q.nextReady() != nil {
		t.Fatal("none is ready, but one has its turn")
	}
	for _, ended := range q.endedKeys {
		for _, m := range ended {
			if !m.inHistory {
				deadKeyed++
			}
		}
		if !slices.IsSortedFunc(ended, byEnd) {
			t.Fatal("what ended of a key is not in order")
		}
	}
	if listed := q.history; past > 0 && listed.list.n != past || past == 0 && listed != nil || int64(past) > q.kept().Max {
		t.Fatalf("%d are listed as finished, of at most %d", past, q.kept().Max)
	}
	for s, n := range n[:engine.Finished] {
		if q.states[s].n != n || len(q.states[s].page(codec.WholeList, false, n+1)) != n {
			t.Fatalf("%v: %d by minute, %d of them", engine.State(s), q.states[s].n, n)
		}
	}
	ended := func(x *ends) (n int) {
		for _, turn := range slices.Compact(slices.SortedFunc(slices.Values(x.heap), byTurn)) {
			if q.ended(x, turn) != nil {
				n++
			}
		}
		return n
	}
	if f := q.finished; f == nil && n[engine.Finished] != 0 || f != nil && (f.n != n[engine.Finished] || ended(&f.first) != f.n) {
		t.Fatalf("%d finished, not %+v", n[engine.Finished], f)
	}
	if s := q.settings; s != nil {
		if (q.deaths == nil) != (s.DeadKeep == 0 && s.DeadMax == 0) || q.deaths != nil && ended(q.deaths) != n[engine.Dead] {
			t.Fatalf("%d dead, not %+v", n[engine.Dead], q.deaths)
		}
		if s.DeadMax > 0 && int64(n[engine.Dead]) > s.DeadMax {
			t.Fatalf("%d are dead, of %d that may be", n[engine.Dead], s.DeadMax)
		}
	}
	live := n[engine.Scheduled] + n[engine.Ready] + n[engine.Leased]
	pending := func(a *alarms) (n int) {
		if a.sole.place != 0 {
			n++
		}
		if a.wheel != nil {
			n += a.wheel.Len()
		}
		return n
	}
	got := []int{pending(&q.scheduled), pending(&q.leases), pending(&q.expiring), q.keys.n, q.ids.n, q.msgs.n, deadKeyed, int(e.pending.Load())}
	want := []int{n[engine.Scheduled], n[engine.Leased], expiring, live + n[engine.Finished], live + n[engine.Dead] + past, live + n[engine.Dead] + n[engine.Finished] + past, n[engine.Dead], live}
	if !slices.Equal(got, want) {
		t.Fatalf("scheduled, leases, expiring, keys, ids, messages, dead keys, pending: %v, want %v", got, want)
	}
}

func TestMinutesBefore1970(t *testing.T) {
	for ms, want := range map[int64]int64{-1: -1, 0: 0, -60_000: -1, -60_001: -2, 59_999: 0, 60_000: 1} {
		if got := rules.MinuteOf(ms); got != want {
			t.Errorf("minute of %d: %d, want %d", ms, got, want)
		}
	}
	e, _ := newEngine(t)
	m := msg("q", "old", 0)
	m.Due = engine.When{At: time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)}
	push(t, e, m)
	page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Ready, Limit: 1})
	if err != nil || len(page.Messages) != 1 || !page.Messages[0].Due.Equal(m.Due.At) {
		t.Errorf("%+v, %v", page, err)
	}
}
