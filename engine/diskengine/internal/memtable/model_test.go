package memtable

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is the least that does what Recent does.
type model struct {
	*Tables
	all    map[uint64]Entry
	flight *Sealed
	passed map[uint64]uint32 // ordinals of what was passed and is still there
	left   [Areas][]uint32
	last   [Areas]Entry // that was passed
	next   [Areas]uint32
	id     uint64
}

func own(e Entry) Entry {
	e.Key, e.Value = bytes.Clone(e.Key), bytes.Clone(e.Value)
	return e
}

func compare(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Area, b.Area), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID))
}

func is(a, b Entry) bool {
	return compare(a, b) == 0 && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && a.Sealed == b.Sealed
}

var sizes = []int{0, 1, 15, 16, 17, 200, 300, 5000, maxSlot - headerSize - 3, maxSlot, maxSlot + 1}

func (m *model) draw(t *rapid.T, id uint64) Entry {
	e := Entry{ID: id, Queue: rapid.Uint32Range(1, 3).Draw(t, "queue"), Area: Area(rapid.IntRange(0, int(Areas)-1).Draw(t, "area")), At: rapid.Int64Range(-3, 3).Draw(t, "at")}
	e.Value = bytes.Repeat([]byte{byte(id)}, rapid.SampledFrom(sizes).Draw(t, "size"))
	if rapid.IntRange(0, 3).Draw(t, "keyed") > 0 {
		e.Key = fmt.Append(nil, "k", rapid.IntRange(0, 30).Draw(t, "key"))
		for _, other := range m.all { // of the dead and the finished many may have one
			if !e.Area.Shares() && other.Queue == e.Queue && other.Area == e.Area && bytes.Equal(other.Key, e.Key) {
				e.Key = fmt.Append(nil, "own", id)
			}
		}
	}
	return e
}

// any draws the id of an entry, or now and then one that is not there.
func (m *model) any(t *rapid.T) uint64 {
	return rapid.Uint64Range(1, m.id+1).Draw(t, "id")
}

func (m *model) went(id uint64) {
	if e := m.all[id]; e.Sealed {
		if n, ok := m.passed[id]; ok {
			m.left[e.Area] = append(m.left[e.Area], n)
			delete(m.passed, id)
		}
	}
	delete(m.all, id)
}

func (m *model) set(e Entry) {
	e.Sealed = false
	m.all[e.ID] = own(e)
}

// moved is one that has another area and time, and no key that another has.
func (m *model) moved(t *rapid.T, e Entry) Entry {
	d := m.draw(t, e.ID)
	e.Area, e.At = d.Area, d.At
	for id, other := range m.all {
		if id != e.ID && !e.Area.Shares() && other.Queue == e.Queue && other.Area == e.Area && bytes.Equal(other.Key, e.Key) {
			e.Area = Dead
		}
	}
	return e
}

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.check,
		"add": func(t *rapid.T) {
			m.id++
			e := m.draw(t, m.id)
			m.Add(e)
			m.set(e)
		},
		"add more": func(t *rapid.T) {
			for range 60 {
				m.id++
				e := Entry{ID: m.id, Queue: 1 + uint32(m.id%3), At: int64(m.id * 7 % 11), Key: fmt.Append(nil, m.id), Value: []byte("v")}
				m.Add(e)
				m.set(e)
			}
		},
		"put": func(t *rapid.T) {
			id := m.any(t)
			m.id = max(m.id, id)
			e := m.draw(t, id)
			m.Put(e)
			m.went(id)
			m.set(e)
		},
		"put what was found": func(t *rapid.T) {
			e, ok := m.ByID(m.any(t))
			if !ok {
				return
			}
			e = m.moved(t, e)
			want := own(e)
			if rapid.Bool().Draw(t, "shorter") {
				e.Value = e.Value[len(e.Value)/2:]
				want.Value = bytes.Clone(e.Value)
			}
			m.Put(e)
			m.went(e.ID)
			m.set(want)
		},
		"add or put long": func(t *rapid.T) {
			id := m.any(t)
			if rapid.Bool().Draw(t, "new") {
				id = m.id + 1
			}
			m.id = max(m.id, id)
			e := m.draw(t, id)
			want := own(e)
			tail := bytes.Repeat([]byte{byte(m.id)}, rapid.SampledFrom([]int{1, 100, maxSlot, maxSlot + 1}).Draw(t, "tail"))
			if rapid.Bool().Draw(t, "ahead") {
				e.Ahead = m.Ahead(rapid.IntRange(0, 100).Draw(t, "head"), tail)
				defer e.Ahead.Drop()
			}
			e.Tail, want.Value = tail, slices.Concat(want.Value, tail)
			m.Put(e)
			m.went(id)
			m.set(want)
		},
		"trim":   func(*rapid.T) { m.Trim() },
		"remove": func(t *rapid.T) { m.remove(t, m.any(t)) },
		"remove many": func(t *rapid.T) {
			from, n := m.any(t), rapid.Uint64Range(1, 200).Draw(t, "n")
			for id := from; id < from+n; id++ {
				m.remove(t, id)
			}
		},
		"seal": func(t *rapid.T) {
			switch {
			case m.flight == nil:
				m.begin(m.Seal())
			case m.next == [Areas]uint32{}:
				m.flight.Join(m.Seal())
			default:
				t.Skip()
			}
			for id, e := range m.all {
				e.Sealed = true
				m.all[id] = e
			}
		},
		"pass": func(t *rapid.T) {
			if m.flight == nil {
				t.Skip()
			}
			a := Area(rapid.IntRange(0, int(Areas)-1).Draw(t, "area"))
			want := m.sorted(func(e Entry) bool { return e.Sealed && e.Area == a && (m.next[a] == 0 || compare(m.last[a], e) < 0) })
			most := rapid.IntRange(1, 100).Draw(t, "most")
			want = want[:min(most, len(want))]
			var got []Entry
			if n := m.flight.Pass(a, most, func(e Entry) { got = append(got, own(e)) }); n != len(got) {
				t.Fatalf("passed %d, said %d", len(got), n)
			}
			m.equal(t, "pass", got, want)
			for _, e := range got {
				m.passed[e.ID], m.last[a] = m.next[a], e
				m.next[a]++
			}
		},
		"again": func(t *rapid.T) {
			if m.flight == nil {
				t.Skip()
			}
			m.flight.Again()
			m.begin(m.flight)
		},
		"drop": func(t *rapid.T) {
			if m.flight == nil {
				t.Skip()
			}
			for a := range Areas {
				if got := m.flight.Left(a); !slices.Equal(got, m.left[a]) {
					t.Fatalf("area %d: left are %v, want %v", a, got, m.left[a])
				}
				if got, want := m.flight.Count(a), len(m.sorted(func(e Entry) bool { return e.Sealed && e.Area == a })); got != int64(want) {
					t.Fatalf("area %d: %d are sealed, want %d", a, got, want)
				}
			}
			m.flight.Drop()
			m.flight = nil
			for id, e := range m.all {
				if e.Sealed {
					delete(m.all, id)
				}
			}
			m.Trim()
		},
	}
}

// begin begins to pass a memtable from its start.
func (m *model) begin(s *Sealed) {
	m.flight, m.passed = s, map[uint64]uint32{}
	m.left, m.last, m.next = [Areas][]uint32{}, [Areas]Entry{}, [Areas]uint32{}
}

func (m *model) remove(t *rapid.T, id uint64) {
	_, want := m.all[id]
	if got := m.Remove(id); got != want {
		t.Fatalf("remove %d: %v, want %v", id, got, want)
	}
	m.went(id)
}

func (m *model) sorted(want func(Entry) bool) (list []Entry) {
	for _, e := range m.all {
		if want(e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, compare)
	return list
}

func (m *model) equal(t *rapid.T, what string, got, want []Entry) {
	if !slices.EqualFunc(got, want, is) {
		t.Fatalf("%s: got %.300v, want %.300v", what, got, want)
	}
}

// check compares everything that can be asked.
func (m *model) check(t *rapid.T) {
	if m.Len() != len(m.all) {
		t.Fatalf("%d entries, want %d", m.Len(), len(m.all))
	}
	for range 8 {
		m.checkID(t, m.any(t))
	}
	if e, found := m.ByKey(1, Live, []byte("nobody's")); found {
		t.Fatalf("nobody's key leads to %v", e)
	}
	m.checkOrder(t, rapid.Uint32Range(1, 3).Draw(t, "queue"), Area(rapid.IntRange(0, int(Areas)-1).Draw(t, "area")))
	sum := int64(0)
	m.Places(func(q uint32, a Area, n int64) {
		if sum += n; n != m.Count(q, a) {
			t.Fatalf("queue %d, area %d: %d and %d", q, a, n, m.Count(q, a))
		}
	})
	if sum != int64(len(m.all)) {
		t.Fatalf("the counts make %d", sum)
	}
}

func (m *model) checkID(t *rapid.T, id uint64) {
	want, ok := m.all[id]
	if got, found := m.ByID(id); found != ok || !is(got, want) {
		t.Fatalf("id %d: %v %.100v, want %v %.100v", id, found, got, ok, want)
	}
	if !ok || len(want.Key) == 0 {
		return
	}
	last := want
	for _, e := range m.all {
		if e.Queue == want.Queue && e.Area == want.Area && bytes.Equal(e.Key, want.Key) && compare(last, e) < 0 {
			last = e
		}
	}
	if got, found := m.ByKey(want.Queue, want.Area, want.Key); !found || !is(got, last) {
		t.Fatalf("key %q: %v %.100v, want %.100v", want.Key, found, got, last)
	}
}

func (m *model) checkOrder(t *rapid.T, q uint32, a Area) {
	from := Position{rapid.Int64Range(-4, 4).Draw(t, "from"), rapid.Uint64Range(0, m.id).Draw(t, "from id")}
	at := func(e Entry) int { return cmp.Or(cmp.Compare(e.At, from.At), cmp.Compare(e.ID, from.ID)) }
	here := func(e Entry) bool { return e.Queue == q && e.Area == a }
	if got, want := m.Count(q, a), len(m.sorted(here)); got != int64(want) {
		t.Fatalf("%d entries of queue %d in area %d, want %d", got, q, a, want)
	}
	collect := func(got *[]Entry) func(Entry) bool {
		return func(e Entry) bool { *got = append(*got, own(e)); return true }
	}
	var up, down, all []Entry
	m.Ascend(q, a, from, collect(&up))
	m.equal(t, "ascend", up, m.sorted(func(e Entry) bool { return here(e) && at(e) >= 0 }))
	m.Descend(q, a, from, collect(&down))
	to := Position{rapid.Int64Range(-4, 4).Draw(t, "to"), rapid.Uint64Range(0, m.id).Draw(t, "to id")}
	between := func(e Entry) bool {
		return here(e) && at(e) >= 0 && compare(e, Entry{Queue: q, Area: a, At: to.At, ID: to.ID}) < 0
	}
	if got, want := m.CountRange(q, a, from, to), len(m.sorted(between)); got != int64(want) {
		t.Fatalf("%d entries from %v to %v, want %d", got, from, to, want)
	}
	if got, want := m.CountRange(q, a, First, endOfArea), m.Count(q, a); got != want {
		t.Fatalf("%d entries in all, counted %d", got, want)
	}
	slices.Reverse(down)
	m.equal(t, "descend", down, m.sorted(func(e Entry) bool { return here(e) && at(e) < 0 }))
	m.Ascend(q, a, First, collect(&all))
	m.equal(t, "all", all, append(down, up...))
}

// TestModel: all that can be asked is answered as by the least that could, whatever was done.
func TestModel(t *testing.T) {
	for _, onHeap := range []bool{true, false} {
		t.Run(fmt.Sprint("heap ", onHeap), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := &model{Tables: New(&Config{OnHeap: onHeap, Keep: 1 << 20}), all: map[uint64]Entry{}}
				defer m.Close()
				t.Repeat(m.actions())
			})
		})
	}
}
