package diskengine

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tarryhq/tarry/engine"
)

// readMessage reads a message, or nil when there is none.
func (q *queue) readMessage(from pebble.Reader, id engine.ID, body bool) (r *record, err error) {
	var key [headLen + 8]byte
	_, err = q.e.store.get(from, idKey(key[:0], kindMessage, q.num, id), func(v []byte) (err error) {
		r, err = parseRecord(id, v)
		return err
	})
	if err != nil || r == nil {
		return nil, err
	}
	if body {
		if err := q.readBody(from, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// readBody reads the body of a message if it stands apart.
func (q *queue) readBody(from pebble.Reader, r *record) error {
	if !r.apart {
		return nil
	}
	var key [headLen + 8]byte
	found, err := q.e.store.get(from, idKey(key[:0], kindBody, q.num, r.id), func(v []byte) error {
		r.Body = slices.Clone(v)
		return nil
	})
	if err == nil && !found {
		err = errNoBody
	}
	return err
}

// headRead is what was read of a message; nil: nothing is there.
type headRead struct {
	record *record
	err    error
}

// readHeads reads messages without bodies that stand apart. What lies side by side
// on disk is read on one way: much of what falls due together was pushed together.
func (q *queue) readHeads(heads []slot) ([]headRead, error) {
	read := make([]headRead, len(heads))
	if len(heads) == 1 {
		read[0].record, read[0].err = q.readMessage(q.e.store.db, heads[0].id, false)
		return read, nil
	}
	order := make([]int, len(heads))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(heads[a].id, heads[b].id) })
	lower := idKey(nil, kindMessage, q.num, heads[order[0]].id)
	it, err := q.e.store.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upperBound(appendHead(nil, kindMessage, q.num))})
	if err != nil {
		return nil, err
	}
	var key [headLen + 8]byte
	for _, i := range order {
		want := idKey(key[:0], kindMessage, q.num, heads[i].id)
		// A step is cheaper than a search.
		if !(it.Valid() && it.Next() && bytes.Equal(it.Key(), want)) && !(it.SeekGE(want) && bytes.Equal(it.Key(), want)) {
			if err = it.Error(); err != nil {
				break
			}
			continue
		}
		v, err := it.ValueAndErr()
		if err == nil {
			read[i].record, err = parseRecord(heads[i].id, v)
		}
		read[i].err = err
	}
	return read, errors.Join(err, it.Close())
}

var errNoBody = errors.New("corrupt entry: the message's body is missing")
