package diskengine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tarryhq/tarry/engine"
)

// survey reads all that the disk holds of a queue and returns what does not fit
// together: memory must hold just what waits below loadedTo, at its place, and the
// counters, keys, leases and marks what the messages say.
func survey(q *queue) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := surveyor{
		q: q, due: make(map[position]uint32), dead: make(map[position]bool), leases: make(map[engine.ID]*lease),
		keys: make(map[string]keyRef), minutes: make(map[int64]int64), records: make(map[engine.ID]*record),
		forget: make(map[position]string), forgets: forGood,
	}
	if err := s.read(); err != nil {
		return err
	}
	s.near()
	s.leased()
	s.messages()
	s.memories()
	s.counters()
	if len(s.wrong) > 0 {
		return fmt.Errorf("queue %s, loaded to %v:\n\t%s", q.name, q.loadedTo, strings.Join(s.wrong, "\n\t"))
	}
	return nil
}

// sound fails the test when a queue does not hold together.
func sound(t *testing.T, q *queue) {
	t.Helper()
	if err := survey(q); err != nil {
		t.Fatal(err)
	}
}

type surveyor struct {
	q       *queue
	due     map[position]uint32
	dead    map[position]bool
	leases  map[engine.ID]*lease
	keys    map[string]keyRef
	minutes map[int64]int64
	records map[engine.ID]*record
	counts  counts
	forget  map[position]string
	forgets int64
	mark    position
	wrong   []string
}

func (s *surveyor) say(format string, args ...any) {
	if len(s.wrong) < 20 {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}

func (s *surveyor) read() error {
	s.mark = lastPosition
	for kind, take := range map[byte]func(k, v []byte) error{
		kindDue: func(k, v []byte) error {
			_, p, err := parseTimeKey(k, kindDue)
			if err == nil {
				s.due[p], err = parsePriority(v)
			}
			return err
		},
		kindDead: func(k, _ []byte) error {
			_, p, err := parseTimeKey(k, kindDead)
			s.dead[p] = true
			return err
		},
		kindLease: func(k, v []byte) error {
			_, id, err := parseIDKey(k, kindLease)
			if err == nil {
				s.leases[id], err = parseLease(id, v)
			}
			return err
		},
		kindKey: func(k, v []byte) (err error) {
			s.keys[string(k[headLen:])], err = parseKeyRef(v)
			return err
		},
		kindMinute: func(k, v []byte) error {
			_, minute, err := parseMinuteKey(k)
			if err == nil {
				s.minutes[minute], err = parseSum(v)
			}
			return err
		},
		kindMessage: func(k, v []byte) error {
			_, id, err := parseIDKey(k, kindMessage)
			if err == nil {
				s.records[id], err = parseRecord(id, v)
			}
			return err
		},
		kindForget: func(k, v []byte) error {
			_, p, err := parseTimeKey(k, kindForget)
			s.forget[p] = string(v)
			return err
		},
		kindCounts: func(_, v []byte) (err error) {
			n := s.counts.finished
			s.counts, err = parseCounts(v)
			s.counts.finished = n
			return err
		},
		kindSettings: func(_, v []byte) error {
			r, err := parseRules(v)
			if err == nil && (s.q.rules == nil || !reflect.DeepEqual(r.Settings, s.q.rules.Settings) || r.revision != s.q.rules.revision) {
				s.say("settings %+v, on disk %+v", s.q.rules, r)
			}
			return err
		},
		kindFinished: func(_, v []byte) (err error) { s.counts.finished, s.forgets, err = parseFinished(v); return err },
		kindMark:     func(_, v []byte) (err error) { s.mark, err = parsePosition(v); return err },
	} {
		head := appendHead(nil, kind, s.q.num)
		err := scan(s.q.e.store.db, head, upperBound(head), func(k, v []byte) (bool, error) { return true, take(k, v) })
		if err != nil {
			return fmt.Errorf("kind %c: %w", kind, err)
		}
	}
	return nil
}

// near compares memory with the order of due times.
func (s *surveyor) near() {
	n := &s.q.near
	there := make(map[position]uint32)
	ready := 0
	for id, i := range n.at {
		at := n.slots[i]
		switch {
		case at.id != id:
			s.say("id %v has the slot of %v", id, at.id)
		case at.heap < 0 && at.at <= n.now:
			s.say("%v is due and in the wheel", at.position)
		case at.heap >= 0 && at.at > n.now:
			s.say("%v is not due and in the heap", at.position)
		case at.heap >= 0 && n.ready[at.heap] != i:
			s.say("%v is not at its place of the heap", at.position)
		}
		if at.heap >= 0 {
			ready++
		}
		there[at.position] = at.priority
	}
	for k := range n.ready {
		if k > 0 && n.less(n.ready[k], n.ready[(k-1)/2]) {
			s.say("the heap is out of order at %d", k)
		}
	}
	if ready != len(n.ready) || len(n.at)-ready != n.later.len() {
		s.say("%d of %d are ready, the heap holds %d and the wheel %d", ready, len(n.at), len(n.ready), n.later.len())
	}
	for p, priority := range s.due {
		got, ok := there[p]
		switch {
		case p.less(s.q.loadedTo) && !ok:
			s.say("%v waits on disk and is not in memory", p)
		case ok && got != priority:
			s.say("%v has priority %d in memory and %d on disk", p, got, priority)
		}
		if p.less(s.q.mark) || p.less(s.mark) {
			s.say("%v lies below the mark %v, on disk %v", p, s.q.mark, s.mark)
		}
	}
	for p := range there {
		if _, ok := s.due[p]; !ok {
			s.say("%v is in memory and does not wait on disk", p)
		} else if !p.less(s.q.loadedTo) {
			s.say("%v is in memory though behind what is loaded", p)
		}
	}
}

// leased compares the table of leases with the disk.
func (s *surveyor) leased() {
	t := &s.q.leases
	for id, l := range t.byID {
		d := s.leases[id]
		if d == nil || d.token != l.token || d.attempt != l.attempt || d.deadline != l.deadline {
			s.say("lease %+v, on disk %+v", l, d)
		}
		if l.known && s.records[id] != nil && (l.key != s.records[id].key || l.apart != s.records[id].apart) {
			s.say("lease %+v of %+v", l, s.records[id])
		}
	}
	if len(t.byID) != len(s.leases) || t.alarms.len() != len(t.byID) {
		s.say("%d leases with %d timers, on disk %d", len(t.byID), t.alarms.len(), len(s.leases))
	}
}

// messages checks that each message stands in one order and holds its key.
func (s *surveyor) messages() {
	waits := make(map[engine.ID]position)
	for p := range s.due {
		if was, twice := waits[p.id]; twice {
			s.say("id %v waits at %v and at %v", p.id, was, p)
		}
		waits[p.id] = p
	}
	for id, r := range s.records {
		_, waiting := waits[id]
		places := 0
		for _, in := range []bool{waiting, s.dead[r.grave()] && r.dead, s.leases[id] != nil} {
			if in {
				places++
			}
		}
		switch {
		case places != 1:
			s.say("id %v stands in %d orders", id, places)
		case waiting && (waits[id] != r.position() || r.dead):
			s.say("%+v waits at %v", r, waits[id])
		}
		if k, ok := s.keys[r.key]; r.key != "" && !r.dead && (!ok || k.id != id || waiting && k.due != r.due || k.apart != r.apart) {
			s.say("key %q says %+v of %+v", r.key, k, r)
		}
	}
	for _, id := range slices.Concat(slices.Collect(maps.Keys(waits)), slices.Collect(maps.Keys(s.leases))) {
		if s.records[id] == nil {
			s.say("id %v has no record", id)
		}
	}
	for key, k := range s.keys {
		if r := s.records[k.id]; k.memory == nil && (r == nil || r.key != key || r.dead || k.remembers != r.remembered()) {
			s.say("key %q leads to %+v", key, r)
		}
	}
	for key, k := range s.q.names.since {
		if d := s.keys[key]; !reflect.DeepEqual(d, k) {
			s.say("key %q: %+v in memory, %+v on disk", key, k, d)
		}
	}
}

// memories checks that each key that is remembered stands once in their order.
func (s *surveyor) memories() {
	n := 0
	for key, k := range s.keys {
		if k.memory == nil {
			continue
		}
		n++
		at := k.memory.position()
		if got, ok := s.forget[at]; !ok || got != key {
			s.say("key %q is remembered as %+v, in order there is %q", key, k.memory, got)
		}
		if at.at < s.q.forgets || s.records[k.memory.id] != nil {
			s.say("key %q is remembered as %+v, forgetting begins at %d", key, k.memory, s.q.forgets)
		}
	}
	if n != len(s.forget) || s.q.forgets < s.forgets && n > 0 {
		s.say("%d keys are remembered, %d in order, from %d, on disk %d", n, len(s.forget), s.q.forgets, s.forgets)
	}
}

func (s *surveyor) counters() {
	want := counts{int64(len(s.due)), int64(len(s.leases)), int64(len(s.dead)), int64(len(s.forget))}
	if s.q.counts != want || s.counts != want {
		s.say("counters %+v, on disk %+v, want %+v", s.q.counts, s.counts, want)
	}
	for p := range s.dead {
		if r := s.q.rules; r != nil && p.less(r.graves) {
			s.say("%v died before %v", p, r.graves)
		}
	}
	minutes := make(map[int64]int64)
	for p := range s.due {
		minutes[minuteOf(p.at)]++
	}
	maps.DeleteFunc(s.minutes, func(_, n int64) bool { return n == 0 })
	if !maps.Equal(minutes, s.minutes) {
		s.say("counts by minute %v, want %v", s.minutes, minutes)
	}
}

// frozen is all that the disk holds, to see that nothing was changed.
func frozen(t *testing.T, db *pebble.DB) []byte {
	t.Helper()
	var all []byte
	if err := scan(db, nil, nil, func(k, v []byte) (bool, error) {
		all = append(binary.AppendUvarint(all, uint64(len(k))), k...)
		all = append(binary.AppendUvarint(all, uint64(len(v))), v...)
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
