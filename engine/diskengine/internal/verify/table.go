package verify

import (
	"errors"
	"fmt"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// checkTable checks an sstable by itself, deletes entries as its deletion bitmap says, and keeps
// it open if it is sound.
func (r *reader) checkTable(is manifest.Table) error {
	name := sstable.Name(r.tablesDir, is.Number)
	open, err := sstable.Open(r.fs, r.tablesDir, is.Number, &sstable.Config{ID: r.state.Store})
	if err != nil {
		return r.wrong(err, name)
	}
	r.rep.Tables++
	r.rep.Entries += int64(open.Len())
	if uint64(open.Bytes()) != is.Bytes || open.Len() != is.Entries {
		r.rep.add(r.path(manifest.Name), -1, "sstable %d has %d bytes and %d entries; the manifest says %d and %d", is.Number, open.Bytes(), open.Len(), is.Bytes, is.Entries)
	}
	if is.Area >= uint8(memtable.Areas) {
		r.rep.add(r.path(manifest.Name), -1, "sstable %d is of area %d, which does not exist", is.Number, is.Area)
		return open.Close()
	}
	err = open.VerifyValues(r.pace, func(e sstable.Entry) (sstable.Key, error) { return r.keyOf(memtable.Area(is.Area), e) })
	if err != nil {
		return errors.Join(r.wrong(err, name), open.Close())
	}
	r.parts = append(r.parts, &part{number: is.Number, is: is, table: open})
	if err := is.Restore(r.dir, open); err != nil {
		return r.wrong(err, "")
	}
	if n := open.Count(0, open.Len()); n != int(is.Alive) && open.Len() == is.Entries {
		r.rep.add(r.path(manifest.Name), -1, "%d are alive in sstable %d; the manifest says %d", n, is.Number, is.Alive)
	}
	return nil
}

// keyOf decodes and checks an entry of an sstable, and returns its key.
func (r *reader) keyOf(area memtable.Area, e sstable.Entry) (k sstable.Key, err error) {
	switch id := memtable.MessageOf(e.ID); {
	case id == 0 || id >= r.state.NextID:
		return k, fmt.Errorf("id %d was not given by then; the next one is %d", id, r.state.NextID)
	case e.ID != area.IDOf(id):
		return k, fmt.Errorf("message %d has an entry of another area", id)
	case e.Queue == 0 || e.Queue >= r.state.NextQueue:
		return k, fmt.Errorf("there was no queue %d by then; the next one is %d", e.Queue, r.state.NextQueue)
	}
	key, value, err := record.ParseKeyed(e.Value)
	if err != nil {
		return k, err
	}
	switch {
	case area == memtable.Listed:
		if _, err := record.ParseHistoryEntry(value); err != nil || len(key) == 0 {
			return k, err
		}
		return r.secret.Key(e.Queue, string(key)), nil
	case area == memtable.Finished:
		if _, err := record.ParseTrace(value); err != nil {
			return k, err
		}
		if len(key) == 0 {
			return k, errors.New("no key is remembered")
		}
		return r.secret.Key(e.Queue, string(key)), nil
	}
	s, content, err := record.ParseValue(value)
	if err != nil {
		return k, err
	}
	if _, err := record.ParseContent(content); err != nil {
		return k, err
	}
	switch at := s.At(); {
	case s.Dead != (area == memtable.Dead):
		return k, fmt.Errorf("a message of another area: whether it is dead is %v", s.Dead)
	case at != e.At:
		return k, fmt.Errorf("a message of time %d stands at time %d", at, e.At)
	case len(key) == 0:
		return k, nil
	}
	return r.secret.Key(e.Queue, string(key)), nil
}
