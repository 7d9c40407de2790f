package memtable

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// leaseModel is the least that does what Leases does.
type leaseModel struct {
	*Leases
	all map[uint64]Lease
}

func (m *leaseModel) of(queue uint32, over bool) (some []Lease) {
	for _, l := range m.all {
		if l.Queue == queue && l.lapsed == over {
			some = append(some, l)
		}
	}
	slices.SortFunc(some, func(a, b Lease) int { return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), cmp.Compare(a.ID, b.ID)) })
	return some
}

func bare(l *Lease) Lease {
	b := *l
	b.ref = 0
	return b
}

func sameLeases(t *rapid.T, what string, got, want []Lease) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %+v, want %+v", what, got, want)
	}
}

func (m *leaseModel) look(t *rapid.T) {
	if m.Len() != len(m.all) {
		t.Fatalf("%d are there, want %d", m.Len(), len(m.all))
	}
	overs := 0
	for queue := range uint32(4) {
		held, over := m.of(queue, false), m.of(queue, true)
		overs += len(over)
		at := Position{At: rapid.Int64Range(-4, 4).Draw(t, "from"), ID: rapid.Uint64Range(0, 50).Draw(t, "from id")}
		from, _ := slices.BinarySearchFunc(held, at, func(l Lease, p Position) int { return cmp.Or(cmp.Compare(l.Deadline, p.At), cmp.Compare(l.ID, p.ID)) })
		var up, down, of []Lease
		m.Ascend(queue, at, func(l *Lease) bool { up = append(up, bare(l)); return true })
		m.Descend(queue, at, func(l *Lease) bool { down = append(down, bare(l)); return true })
		m.AscendLapsed(queue, First, func(l *Lease) bool { of = append(of, bare(l)); return true })
		slices.Reverse(down)
		sameLeases(t, "up", up, held[from:])
		sameLeases(t, "down", down, held[:from])
		sameLeases(t, "over", of, over)
		if l := m.First(queue); (l == nil) != (len(held) == 0) || l != nil && bare(l) != held[0] {
			t.Fatalf("the first is %v of %v", l, held)
		}
		due := int64(0)
		for _, l := range held {
			if l.Due < at.At {
				due++
			}
		}
		if n := m.DueBefore(queue, at.At); n != due {
			t.Fatalf("%d are due before %d, want %d of %v", n, at.At, due, held)
		}
	}
	m.EachLapsed(func(l *Lease) bool { overs--; return l.HasLapsed() })
	if overs != 0 {
		t.Fatalf("%d more have lapsed", overs)
	}
}

// TestLeases compares the table with the model, in random histories.
func TestLeases(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := leaseModel{NewLeases(&Config{OnHeap: true}, 1000), make(map[uint64]Lease)}
		defer m.Close()
		one := func() *Lease {
			id := rapid.Uint64Range(1, 50).Draw(t, "id")
			l := m.ByID(id)
			if want, ok := m.all[id]; ok != (l != nil) || ok && bare(l) != want {
				t.Fatalf("id %d is %+v, want %+v", id, l, want)
			}
			return l
		}
		when := func(what string) int64 { return rapid.Int64Range(-3, 3).Draw(t, what) }
		t.Repeat(map[string]func(*rapid.T){
			"add": func(*rapid.T) {
				id := rapid.Uint64Range(1, 50).Draw(t, "id")
				if _, ok := m.all[id]; ok {
					return
				}
				l := Lease{ID: id, Queue: rapid.Uint32Range(1, 3).Draw(t, "queue"), Deadline: when("deadline"), Due: when("due"), Attempt: uint32(id), Nonce: [16]byte{byte(id)}}
				if got := m.Add(&l); bare(got) != l {
					t.Fatalf("%+v was added as %+v", l, got)
				}
				m.all[id] = l
			},
			"remove": func(*rapid.T) {
				if l := one(); l != nil {
					delete(m.all, l.ID)
					m.Remove(l)
				}
			},
			"lapse": func(*rapid.T) {
				if l := one(); l != nil {
					m.Lapse(l, when("deadline"))
					m.all[l.ID] = bare(l)
				}
			},
			"extend": func(*rapid.T) {
				if l := one(); l != nil {
					at := when("deadline")
					if m.Extend(l, at); l.Deadline != at || l.HasLapsed() {
						t.Fatalf("extended to %d: %+v", at, l)
					}
					m.all[l.ID] = bare(l)
				}
			},
			"set due": func(*rapid.T) {
				if l := one(); l != nil {
					m.SetDue(l, when("due"))
					m.all[l.ID] = bare(l)
				}
			},
			"shrink": func(*rapid.T) { m.Shrink() },
			"":       m.look,
		})
	})
}

// TestLeasesTakeLittle: a lease takes no more than is said of it, and what a table has grown by is given
// back when it is empty.
func TestLeasesTakeLittle(t *testing.T) {
	t.Parallel()
	const n = 100_000
	x := NewLeases(&Config{OnHeap: true}, n)
	defer x.Close()
	empty, _ := x.Memory()
	for i := range uint64(n) {
		at := int64(i * 7919 % n) // in no order
		x.Add(&Lease{ID: i + 1, Queue: 1, Deadline: at, Due: -at})
	}
	taken, _ := x.Memory()
	each := float64(taken-empty) / n
	t.Logf("%.0f bytes each, %d of them the lease", each, LeaseBytes)
	if each > 210 {
		t.Errorf("a lease takes %.0f bytes", each)
	}
	if x.Shrink(); x.Len() != n {
		t.Fatalf("%d are left", x.Len())
	}
	for i := range uint64(n) {
		x.Remove(x.ByID(i + 1))
	}
	x.Shrink()
	if taken, _ := x.Memory(); taken > empty {
		t.Errorf("the empty table takes %d bytes, %d at first", taken, empty)
	}
	for x.Trim() {
	}
	if _, spare := x.Memory(); spare > keptChunks*chunkSize {
		t.Errorf("%d bytes are spare", spare)
	}
}

// TestRoom: a queue takes no more than it leaves for others, and the last lease is had by somebody.
func TestRoom(t *testing.T) {
	t.Parallel()
	x := NewLeases(&Config{OnHeap: true}, 100)
	defer x.Close()
	id := uint64(0)
	for queue, want := range []int{50, 25, 13, 6, 3, 2, 1} {
		got := 0
		for ; x.Room(int64(got)) > 0; got++ {
			id++
			x.Add(&Lease{ID: id, Queue: uint32(queue) + 1})
		}
		if got != want {
			t.Errorf("queue %d takes %d, want %d", queue, got, want)
		}
	}
	if x.Room(0) != 0 {
		t.Errorf("there is room for %d more", x.Room(0))
	}
}
