package diskengine

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
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

// place is where a message lies.
type place struct {
	q  *queue
	id engine.ID
}

func (p place) compare(o place) int {
	if p.q != o.q {
		return cmp.Compare(p.q.num, o.q.num)
	}
	return cmp.Compare(p.id, o.id)
}

// near reports whether there can be little between a place and one behind it.
func (p place) near(behind place) bool { return p.q == behind.q && behind.id-p.id <= nearIDs }

const nearIDs = 256

// messageRead is what was read of a message; nil: nothing is there.
type messageRead struct {
	record *record
	err    error
}

// readMany reads messages without bodies that stand apart. What lies side by side
// on disk is read on one way: much of what falls due together was pushed together.
// The errors of single messages are damage; any other is the call's.
func (e *Engine) readMany(places []place) ([]messageRead, error) {
	if len(places) > 1 {
		read, err := e.sweep(places)
		if !pebble.IsCorruptionError(err) {
			return read, err
		}
	}
	read := make([]messageRead, len(places))
	for i, at := range places {
		read[i].record, read[i].err = at.q.readMessage(e.store.db, at.id, false)
		if err := read[i].err; err != nil && !isDamage(err) {
			return nil, err
		}
	}
	return read, nil
}

// sweep reads messages with one iterator.
func (e *Engine) sweep(places []place) ([]messageRead, error) {
	read := make([]messageRead, len(places))
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return places[a].compare(places[b]) })
	first, last := places[order[0]], places[order[len(order)-1]]
	it, err := e.store.db.NewIter(&pebble.IterOptions{
		LowerBound: idKey(nil, kindMessage, first.q.num, first.id),
		UpperBound: upperBound(appendHead(nil, kindMessage, last.q.num)),
	})
	if err != nil {
		return nil, err
	}
	var key [headLen + 8]byte
	for k, i := range order {
		want := idKey(key[:0], kindMessage, places[i].q.num, places[i].id)
		// A step is cheaper than a search, unless it leads over much that has gone of late.
		near := k > 0 && places[order[k-1]].near(places[i])
		if !(near && it.Valid() && it.Next() && bytes.Equal(it.Key(), want)) && !(it.SeekGE(want) && bytes.Equal(it.Key(), want)) {
			if err = it.Error(); err != nil {
				break
			}
			continue
		}
		var v []byte
		if v, err = it.ValueAndErr(); err != nil {
			break
		}
		read[i].record, read[i].err = parseRecord(places[i].id, v)
	}
	return read, errors.Join(err, it.Close())
}

var (
	errNoBody   = errors.New("corrupt entry: the message's body is missing")
	errNowhere  = errors.New("its due entry leads nowhere and is removed")
	errNoRecord = errors.New("corrupt entry: the message's record is missing")
)

// isDamage reports whether an error says that what was read is damaged, rather than
// that it could not be read this time.
func isDamage(err error) bool {
	return errors.Is(err, codec.ErrMalformed) || errors.Is(err, errNoBody) || pebble.IsCorruptionError(err)
}
