package diskengine

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// names answers who holds a key. Most keys that a push asks for are held by
// nobody. Pebble's Get takes a block read to find that out, since it leaves the
// bloom filters of the last level alone; an iterator may use them. So a queue keeps
// one open, and beside it what has changed since then.
//
// An iterator pins what it reads from, in memory and on disk. It is closed whenever
// a memtable has been flushed, after namesMost changes, and when no key was asked for
// between two rounds.
type names struct {
	it    *pebble.Iterator // nil: none is open, and since is empty
	since map[string]keyRef
	idle  bool // no key was asked for since the last round
}

const namesMost = 1 << 14

// named is a key given to a message, or with an id of 0 taken away.
type named struct {
	key string
	ref keyRef
}

// holder returns who holds a key; an id of 0: nobody.
func (n *names) holder(q *queue, key string) (ref keyRef, err error) {
	if q.gone {
		return keyRef{}, nil
	}
	n.idle = false
	if ref, ok := n.since[key]; ok {
		return ref, nil
	}
	if len(n.since) >= namesMost {
		if err := n.close(); err != nil {
			return ref, err
		}
	}
	if n.it == nil {
		lower := appendHead(nil, kindKey, q.num)
		n.it, err = q.e.store.db.NewIter(&pebble.IterOptions{
			LowerBound: lower, UpperBound: upperBound(lower), UseL6Filters: true,
		})
		if err != nil {
			return ref, err
		}
		if n.since == nil {
			n.since = make(map[string]keyRef)
		}
	}
	k := nameKey(make([]byte, 0, headLen+len(key)), q.num, key)
	var v []byte
	if n.it.SeekPrefixGE(k) && bytes.Equal(n.it.Key(), k) {
		if v, err = n.it.ValueAndErr(); err == nil {
			return parseKeyRef(v)
		}
	} else {
		err = n.it.Error()
	}
	if err != nil {
		_ = n.close() // says the same again
	}
	return ref, err
}

// note takes in what was committed.
func (n *names) note(changes []named) {
	if n.it == nil {
		return // the next iterator will see it
	}
	for _, c := range changes {
		n.since[c.key] = c.ref
	}
}

func (n *names) close() error {
	if n.it == nil {
		return nil
	}
	err := n.it.Close()
	n.it = nil
	clear(n.since) // the next iterator will need its room
	return err
}

// tidy closes the iterator when nobody needs it.
func (n *names) tidy() error {
	if n.idle {
		err := n.close()
		n.since = nil
		return err
	}
	n.idle = true
	return nil
}

// closeNames lets go of what the queues' iterators pin.
func (e *Engine) closeNames() error {
	var errs error
	for _, q := range e.queues() {
		q.mu.Lock()
		errs = errors.Join(errs, q.names.close())
		q.mu.Unlock()
	}
	return errs
}
