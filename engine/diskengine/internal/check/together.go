package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
)

// together compares what stands in different files.
func (m *replayed) together() error {
	if err := m.ids(); err != nil {
		return err
	}
	for _, area := range []recent.Area{recent.Live, recent.Finished} {
		if err := m.keys(area); err != nil {
			return err
		}
	}
	m.queues()
	return nil
}

// paced calls fn, and the pace now and then, for items of an index.
func (c *checker) paced(fn func() error) error {
	const often = 4096
	if c.items++; c.items%often == 0 {
		if err := c.pace(often * 16); err != nil {
			return err
		}
	}
	return fn()
}

// ids looks for those that live twice.
func (m *replayed) ids() error {
	last, in := uint64(0), uint64(0)
	return run.EachID(m.runs, func(id uint64, at int, pos uint32) error {
		return m.paced(func() error {
			r := m.runs[at]
			if !r.Alive(pos) {
				return nil
			}
			if id == last {
				m.twice(r, "message %d stands at %d in run %d and also in run %d", id, pos, r.Number(), in)
			}
			if _, ok := m.recent[engine.ID(id)]; ok {
				m.twice(r, "message %d stands at %d in run %d, and the log tells of it too", id, pos, r.Number())
			}
			last, in = id, r.Number()
			return nil
		})
	})
}

func (m *replayed) twice(r *run.Run, format string, args ...any) {
	m.rep.add(run.Name(m.path(runsName), r.Number()), -1, mendTwice, format, args...)
}

// keys looks for those of an area that two have in a queue.
func (m *replayed) keys(area recent.Area) error {
	told := map[run.Key]engine.ID{}
	for id, is := range m.recent {
		if is.area != area || is.key == (run.Key{}) {
			continue
		}
		if other, ok := told[is.key]; ok {
			m.rep.add(m.logDir(), -1, mendTwice, "messages %d and %d of queue %d have one key", min(id, other), max(id, other), is.queue)
		}
		told[is.key] = id
	}
	var runs []*run.Run
	for i, r := range m.runs {
		if recent.Area(m.areas[i]) == area {
			runs = append(runs, r)
		}
	}
	var last run.Key
	var other uint64
	return run.EachKey(runs, func(key run.Key, at int, pos uint32) error {
		return m.paced(func() error {
			r := runs[at]
			if !r.Alive(pos) {
				return nil
			}
			id, ok := told[key]
			switch {
			case ok:
				m.twice(r, "the message at %d in run %d has the key of message %d, of which the log tells", pos, r.Number(), id)
			case key == last:
				m.twice(r, "the message at %d in run %d has the key of one in run %d", pos, r.Number(), other)
			}
			last, other = key, r.Number()
			return nil
		})
	})
}

// queues looks for those that live in a queue without a name, and for names that two have.
func (m *replayed) queues() {
	lives := map[uint32]bool{}
	for _, is := range m.recent {
		lives[is.queue] = true
	}
	for _, r := range m.runs {
		for _, q := range r.Queues() {
			if r.Count(q.From, q.To) > 0 {
				lives[q.Queue] = true
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(lives)) {
		if _, ok := m.names[n]; !ok {
			m.rep.add(m.logDir(), -1, mendName, "queue %d holds something, and has no name", n)
		}
	}
	has := map[string]uint32{}
	for _, n := range slices.Sorted(maps.Keys(m.names)) {
		name := m.names[n]
		if other, ok := has[name]; ok {
			m.rep.add(m.logDir(), -1, mendName, "queues %d and %d have one name, %q", other, n, name)
		}
		has[name] = n
	}
}

// count counts who lives, by queue.
func (m *replayed) count() {
	of := map[uint32]*Queue{}
	for n, name := range m.names {
		of[n] = &Queue{Name: name, Number: n}
	}
	add := func(queue uint32, area recent.Area, n int) {
		q := of[queue]
		switch {
		case n == 0:
		case area == recent.Dead:
			q.Dead += int64(n)
		case area == recent.Finished:
			q.Finished += int64(n)
		default:
			q.Live += int64(n)
		}
	}
	for _, is := range m.recent {
		add(is.queue, is.area, 1)
	}
	for i, r := range m.runs {
		for _, q := range r.Queues() {
			add(q.Queue, recent.Area(m.areas[i]), r.Count(q.From, q.To))
		}
	}
	m.rep.Queues = []Queue{}
	for _, q := range of {
		m.rep.Queues = append(m.rep.Queues, *q)
	}
	slices.SortFunc(m.rep.Queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
}
