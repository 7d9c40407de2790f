package diskengine

import (
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// history returns how long finished messages of a queue are listed, and how many.
func (c *call) history(q *queue) engine.History {
	if q.settings == nil {
		return c.e.cfg.History.Of(nil)
	}
	return c.e.cfg.History.Of(&q.settings.Settings)
}

// listedFrom is the earliest end of messages of a queue that are listed.
func (c *call) listedFrom(q *queue) int64 {
	return rules.ListedFrom(c.history(q), c.ms)
}

// lists reports whether a message that ended at this instant is to be listed. None is while
// space is short: what is left is for the records that end messages.
func (c *call) lists(q *queue, ended int64) bool {
	if ended < c.listedFrom(q) {
		return false
	}
	e := c.e
	short := e.store.Tight()
	if short && !e.unlisted {
		c.later = append(c.later, func() {
			e.store.Slog.Warn("tarry disk: finished messages are not listed while space is short", "dir", e.store.Dir)
		})
	}
	e.unlisted = short
	return !short
}

// listable is what is listed of a message that ends in this way. by names the canceller. The
// result is part of the message.
func (m *message) listable(how engine.Ending, by string) record.HistoryEntry {
	p := record.HistoryEntry{Due: m.Due, Created: m.Created, Ending: how, Attempt: m.Attempt, Worker: by, Failures: m.Failures}
	if how == engine.Acked {
		nonce := codec.Nonce(m.Nonce)
		if m.lease != nil {
			nonce = m.lease.Nonce
		}
		p.Started, p.Worker = nonce.Started(), m.worker()
	}
	return p
}

func listedEntry(l *record.List) memtable.Entry {
	return memtable.Entry{ID: memtable.Listed.IDOf(uint64(l.ID)), Queue: l.Queue, Area: memtable.Listed, At: l.Ended, Key: l.Key, Value: l.Value}
}

// list lists a message that is gone.
func (c *call) list(q *queue, l *record.List) {
	c.group = l.Append(c.group)
	c.e.store.Memtables.Add(listedEntry(l))
	q.listed++
	q.oldest = min(q.oldest, l.Ended)
	if q.listed > c.history(q).Max {
		c.over = q
	}
}

// dropListed drops finished messages that are listed for too long, and the oldest of too many.
func (c *call) dropListed(q *queue) error {
	most, from := c.history(q).Max, c.listedFrom(q)
	over := func() bool { return q.listed > most || q.listed > 0 && q.oldest < from }
	return c.dropFirst(q, &q.cursors[memtable.Listed], over, func(ended int64) bool {
		q.oldest = ended
		return over()
	})
}

// listedByID finds the finished message with an id; nil: it is not listed.
func (c *call) listedByID(q *queue, id engine.ID) (*engine.Info, error) {
	if q.listed == 0 {
		return nil, nil
	}
	entry := memtable.Listed.IDOf(uint64(id))
	if e, ok := c.e.store.Memtables.ByID(entry); ok {
		return c.listed(q, e.Queue, e.Position(), e.Key, e.Value)
	}
	at, err := c.reader.ByID(engine.ID(entry))
	if at.Src == nil || err != nil {
		return nil, err
	}
	return c.listedAt(q, at)
}

// listedAt is listedByID for a spot in an sstable.
func (c *call) listedAt(q *queue, at store.Spot) (*engine.Info, error) {
	v, err := c.reader.Head(at)
	if err != nil {
		return nil, err
	}
	key, value, err := record.ParseKeyed(v.Value)
	if err != nil {
		return nil, err
	}
	return c.listed(q, v.Queue, memtable.Position{At: v.At, ID: v.ID}, key, value)
}

// listedByKey finds the finished message with a key; of several, the one that ended last.
func (c *call) listedByKey(q *queue, key []byte, hash *keyLookup) (*engine.Info, error) {
	if q.listed == 0 {
		return nil, nil
	}
	e, _, ok, err := c.lastOfKey(q, memtable.Listed, key, hash)
	if !ok || err != nil {
		return nil, err
	}
	return c.listed(q, e.Queue, e.Position(), e.Key, e.Value)
}

func later(a time.Time, id engine.ID, b time.Time, other engine.ID) bool {
	return a.After(b) || a.Equal(b) && id > other
}

// listed is an entry as callers see it; nil: it is of another queue, or listed no more.
func (c *call) listed(q *queue, num uint32, at memtable.Position, key, value []byte) (*engine.Info, error) {
	if num != q.num || at.At < c.listedFrom(q) {
		return nil, nil
	}
	p, err := record.ParseHistoryEntry(value)
	if err != nil {
		return nil, err
	}
	i := &engine.Info{
		ID: engine.ID(memtable.MessageOf(at.ID)), Queue: q.name, Key: string(key), State: engine.Finished, Due: rules.Instant(p.Due), Created: rules.Instant(p.Created),
		Attempt: p.Attempt, Worker: p.Worker, Ending: p.Ending, Ended: rules.Instant(at.At),
		Failures: (&codec.Reader{B: p.Failures}).Failures(), LastError: string(codec.LastReason(p.Failures)),
	}
	if p.Ending == engine.Acked {
		i.Started = rules.Instant(p.Started)
	}
	return i, nil
}
