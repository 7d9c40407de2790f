package diskengine

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

func invalid(hint string) error {
	return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: hint}
}

// Open opens the store in a directory, and makes it when there is none. A nil cfg
// means all defaults. It fails with engine.ErrUnavailable when another process has
// the directory open, and with engine.ErrInvalid when the directory is not a store
// of tarry, is of a newer format or cannot be written to. Time and memory do not
// grow with the messages pending.
func Open(dir string, cfg *Config) (*Engine, error) {
	c := cfg.withDefaults()
	d, err := openDirectory(c.FS, dir, c.Now)
	if err != nil {
		return nil, err
	}
	if err := d.checkPebbleFormat(); err != nil {
		return nil, errors.Join(err, d.unlock())
	}
	lock, err := pebble.LockDirectory(d.storePath(), c.FS)
	if err != nil {
		return nil, errors.Join(d.unwritable(err), d.unlock())
	}
	d.lock2 = lock
	e := &Engine{
		cfg: c, log: c.Logger, dir: d,
		byName: make(map[string]*queue), byNumber: make(map[uint32]*queue),
		done: make(chan struct{}), ended: make(chan error, 1), wake: make(chan struct{}, 1), tail: make(chan applied, 1024),
		nextID: 1, idsReserved: 1,
		space: space{every: spaceEvery}, chunk: loadChunk,
	}
	e.ballast = &ballast{fs: c.FS, name: d.join(ballastName), size: c.BallastBytes}
	e.ballast.load()
	if e.store, err = openStore(d.storePath(), lock, &c, e.ballast); err != nil {
		return nil, errors.Join(&engine.Error{Op: "open", Err: errors.Join(engine.ErrUnavailable, err),
			Hint: "the store in " + dir + " cannot be read: see to the disk, or restore the directory from a copy"}, d.unlock())
	}
	if err := e.load(); err != nil {
		return nil, errors.Join(&engine.Error{Op: "open", Err: err, Hint: "the store in " + dir + " is damaged: restore the directory from a copy"},
			e.store.db.Close(), d.unlock())
	}
	if err := d.made(); err != nil {
		return nil, errors.Join(d.unwritable(err), e.store.db.Close(), d.unlock())
	}
	if usage, err := c.FS.GetDiskUsage(d.path); err != nil || usage.AvailBytes >= uint64(max(0, c.MinFreeBytes)+2*max(0, c.BallastBytes)) {
		e.ballast.held = false // it may have been left unfinished
		_ = e.ballast.take()   // a file system that cannot reserve space has none
	}
	if e.calls.TryEnter() {
		e.sample(make(chan struct{}))
	}
	e.group.Go(e.runLoader)
	e.group.Go(e.runTail)
	return e, nil
}

// load reads what is kept in memory: queues, counters, settings, pauses, marks and leases.
func (e *Engine) load() error {
	now := e.now().ms
	db := e.store.db
	// A store that is new has no such entry.
	if _, err := e.store.get(db, []byte{kindIDs}, func(v []byte) error {
		in := codec.Reader{B: v}
		e.nextID = engine.ID(in.Uint(8))
		e.idsReserved = e.nextID
		return in.End()
	}); err != nil {
		return err
	}
	if err := scan(db, []byte{kindQueue}, []byte{kindQueue + 1}, func(k, v []byte) (bool, error) {
		if len(v) != 4 {
			return false, codec.ErrMalformed
		}
		num := binary.BigEndian.Uint32(v)
		q := newQueue(e, string(k[1:]), num, now)
		e.byName[q.name], e.byNumber[num] = q, q
		e.lastQueue = max(e.lastQueue, num)
		return true, nil
	}); err != nil {
		return err
	}
	each := func(kind byte, fn func(q *queue, k, v []byte) error) error {
		return scan(db, []byte{kind}, []byte{kind + 1}, func(k, v []byte) (bool, error) {
			num, _, err := parseHead(k, kind)
			if err != nil {
				return false, err
			}
			q := e.byNumber[num]
			if q == nil {
				return false, errKey
			}
			return true, fn(q, k, v)
		})
	}
	return errors.Join(
		each(kindCounts, func(q *queue, _, v []byte) (err error) {
			q.counts, err = parseCounts(v) // before the memories among them
			e.live.Add(q.counts.live())
			return err
		}),
		each(kindFinished, func(q *queue, _, v []byte) (err error) {
			q.counts.finished, q.forgets, err = parseFinished(v)
			return err
		}),
		each(kindSettings, func(q *queue, _, v []byte) (err error) {
			q.rules, err = parseRules(v)
			return err
		}),
		each(kindPause, func(q *queue, _, v []byte) (err error) {
			q.pause, err = parseTimeValue(v)
			return err
		}),
		each(kindMark, func(q *queue, _, v []byte) (err error) {
			q.mark, err = parsePosition(v)
			q.loadedTo = q.mark
			return err
		}),
		each(kindLease, func(q *queue, k, v []byte) error {
			_, id, err := parseIDKey(k, kindLease)
			if err != nil {
				return err
			}
			l, err := parseLease(id, v)
			if err != nil {
				return err
			}
			if !l.remote { // whoever held it ended with the process
				l.deadline = min(l.deadline, now)
			}
			q.leases.put(l)
			return nil
		}),
	)
}
