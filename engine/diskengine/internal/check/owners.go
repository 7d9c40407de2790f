package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
)

// together has nobody stand twice.
func (m *restored) together() error {
	if m.passed > 0 {
		m.note("%d purges were not done again: it is not known whom they spared; what they took may be handed out again", m.passed)
	}
	if err := m.ids(); err != nil {
		return err
	}
	for _, a := range []recent.Area{recent.Live, recent.Finished} {
		if err := m.keys(a); err != nil {
			return err
		}
	}
	m.nameless()
	return nil
}

// standing are the runs that there are, and their parts.
func (m *restored) standing(want func(*part) bool) (runs []*run.Run, of []*part) {
	for _, p := range m.parts {
		if p.run != nil && want(p) {
			runs, of = append(runs, p.run), append(of, p)
		}
	}
	return runs, of
}

// ids keeps of each id what the log tells, else what the newest run has: where it is not known which
// runs count, dead or alive.
func (m *restored) ids() error {
	runs, of := m.standing(func(*part) bool { return true })
	type spot struct {
		at  int
		pos uint32
	}
	var same []spot
	last := uint64(0)
	settle := func() {
		best := -1
		for _, s := range same {
			if (m.rebuilt || runs[s.at].Alive(s.pos)) && (best < 0 || of[s.at].number > of[best].number) {
				best = s.at
			}
		}
		if m.recent[engine.ID(last)] != nil {
			best = -1
		}
		for _, s := range same {
			if s.at != best {
				runs[s.at].Kill(s.pos)
			}
		}
		same = same[:0]
	}
	err := run.EachID(runs, func(id uint64, at int, pos uint32) error {
		return m.paced(func() error {
			if id != last {
				settle()
			}
			last = id
			m.given(engine.ID(id))
			same = append(same, spot{at, pos})
			return nil
		})
	})
	settle()
	return err
}

// keys keeps each key of an area with the message that was pushed last. A message that loses its key is
// kept without; a key that is remembered twice once.
func (m *restored) keys(area recent.Area) error {
	type owner struct {
		id   engine.ID
		part *part
		pos  uint32
	}
	var lost []owner
	has := map[run.Key]engine.ID{}
	for _, id := range slices.Sorted(maps.Keys(m.recent)) {
		h := m.recent[id]
		if h.area != area || h.key == "" {
			continue
		}
		key := m.secret.Key(h.place.Queue, h.key)
		if other, ok := has[key]; ok {
			lost = append(lost, owner{id: other})
		}
		has[key] = id
	}
	runs, of := m.standing(func(p *part) bool { return recent.Area(p.is.Area) == area })
	var last run.Key
	var holder owner
	err := run.EachKey(runs, func(key run.Key, at int, pos uint32) error {
		return m.paced(func() error {
			if !runs[at].Alive(pos) {
				return nil
			}
			is, told := owner{part: of[at], pos: pos}, has[key]
			if key != last {
				last, holder = key, owner{id: told}
				if told == 0 {
					holder = is // alone, so far
					return nil
				}
			}
			for _, o := range []*owner{&is, &holder} {
				if o.id != 0 {
					continue
				}
				e, err := o.part.run.Get(o.pos, nil)
				if err != nil {
					return err
				}
				o.id = engine.ID(e.ID)
			}
			if holder.id > is.id {
				is, holder = holder, is
			}
			lost = append(lost, holder)
			holder = is
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, o := range lost {
		if o.part != nil && area == recent.Finished {
			o.part.run.Kill(o.pos)
			continue
		}
		if o.part != nil {
			if _, err := m.taken(o.part, o.pos); err != nil {
				return err
			}
		}
		if area == recent.Finished {
			delete(m.recent, o.id)
		} else {
			m.recent[o.id].key = ""
		}
	}
	if len(lost) > 0 && area == recent.Live {
		m.note("%d messages whose keys newer ones have are kept without a key: most had been acked or cancelled", len(lost))
	}
	return nil
}

// nameless gives names to queues that have lost theirs.
func (m *restored) nameless() {
	lives := map[uint32]int{}
	for _, h := range m.recent {
		lives[h.place.Queue]++
	}
	for _, p := range m.parts {
		if p.run == nil {
			continue
		}
		for _, q := range p.run.Queues() {
			lives[q.Queue] += p.run.Count(q.From, q.To)
		}
	}
	taken := map[string]bool{}
	for _, n := range slices.Sorted(maps.Keys(m.queues)) {
		if taken[m.queues[n]] { // the record that the first one had gone is lost
			delete(m.queues, n)
		} else {
			taken[m.queues[n]] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(lives)) {
		m.queue(n)
		if _, named := m.queues[n]; named || lives[n] == 0 {
			continue
		}
		name := fmt.Sprint("lost-", n)
		if old := m.names[n]; old != "" && !taken[old] {
			name = old
		}
		for taken[name] {
			name += "-"
		}
		taken[name], m.queues[n] = true, name
		m.note("the name of queue number %d, which holds %d, is not known: it is called %s", n, lives[n], name)
	}
}
