package check

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/marks"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// skipped is by how much ids go on beyond what is known of them, where something of the log is missing:
// nobody is to get the id of a message of which only others know.
const skipped = 1 << 20

// write makes all of it durable but for the manifest.
func (m *restored) write() error {
	for area := range recent.Finished + 1 {
		if err := m.writeRecent(area); err != nil {
			return err
		}
	}
	if err := m.writeMarks(); err != nil {
		return err
	}
	if m.broken || m.rebuilt {
		m.next.NextID += skipped
	}
	return m.writeLog()
}

// writeRecent writes a run of what the log tells of an area.
func (m *restored) writeRecent(area recent.Area) error {
	var all []*kept
	for _, h := range m.recent {
		if h.area == area {
			all = append(all, h)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *kept) int { return a.place.Compare(b.place) })
	number := m.number()
	w, err := run.Create(m.disk.FS, m.path(runsName), number, &run.Config{ID: m.state.Store, Pace: m.pace})
	if err != nil {
		return err
	}
	for _, h := range all {
		key := run.Key{}
		if h.key != "" {
			key = m.secret.Key(h.place.Queue, h.key)
		}
		if err := w.Add(h.place, key, h.keyed()); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	made, err := w.Finish()
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	m.parts = append(m.parts, &part{number: number, run: made, is: manifest.Run{Number: number, Area: uint8(area)}})
	return nil
}

// writeMarks writes who has died, and lists the runs in which somebody lives.
func (m *restored) writeMarks() error {
	var died []*run.Run
	for _, p := range m.parts {
		if p.run == nil {
			continue
		}
		n := p.run.Count(0, p.run.Len())
		if n == 0 {
			continue
		}
		is := manifest.Run{Number: p.run.Number(), Area: p.is.Area, Entries: p.run.Len(), Alive: uint32(n), Bytes: uint64(p.run.Bytes())}
		if is.Alive < is.Entries {
			died = append(died, p.run)
		}
		m.next.Runs = append(m.next.Runs, is)
	}
	slices.SortFunc(m.next.Runs, func(a, b manifest.Run) int { return cmp.Compare(a.Number, b.Number) })
	if len(died) == 0 {
		return nil
	}
	number := m.number()
	if _, err := marks.Write(m.disk.FS, m.path(runsName), number, m.state.Store, died, m.pace); err != nil {
		return err
	}
	for i := range m.next.Runs {
		if r := &m.next.Runs[i]; r.Alive < r.Entries {
			r.Marks = number
		}
	}
	return nil
}

// writeLog writes a log with what is in no run.
func (m *restored) writeLog() (err error) {
	m.next.Log = m.number()
	dir := m.path(manifest.LogName(m.next.Log))
	if err := disk.MkdirAll(m.disk.FS, dir); err != nil {
		return err
	}
	log, _, err := wal.Open(m.disk.FS, dir, &wal.Config{ID: m.state.Store, SegmentBytes: m.cfg.segment, Spares: 1, RetryFor: -1,
		Logger: slog.New(slog.DiscardHandler)}, 0, func(wal.Entry) error { return nil })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := log.Begin(); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(m.queues)) {
		b := (&record.Name{Queue: n, Name: []byte(m.queues[n])}).Append(nil)
		if c, ok := m.settings[n]; ok {
			b = c.Append(b)
		}
		if until := m.pauses[n]; until != 0 {
			b = (&record.Pause{Queue: n, Until: until}).Append(b)
		}
		if _, err := log.Append(record.Group, b); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.leases)) {
		spot, err := m.leased(id)
		if err != nil {
			return err
		}
		if spot.Run == 0 {
			continue
		}
		l := m.leases[id]
		l.From = spot
		if _, err := log.Append(record.Group, l.Append(nil)); err != nil {
			return err
		}
	}
	return nil
}

// leased is where a message stands that is leased; nowhere, if it is not.
func (m *restored) leased(id engine.ID) (at record.Spot, err error) {
	err = m.living(id, func(p *part, pos uint32) error {
		if recent.Area(p.is.Area) == recent.Live {
			at = record.Spot{Run: p.run.Number(), At: pos}
		}
		return nil
	})
	return at, err
}
