package sstable

import (
	"cmp"
	"fmt"
)

// Verify reads the whole file and compares its parts: checksums, the order of entries, and the
// tables. Each index must lead to each entry that it should, once, and the filter must let all
// keys through. A mismatch is a *vfs.DamageError. pace is called with the bytes read since the
// last call, and may be nil; its error ends the work.
//
// Whether a key leads to the right entry only a caller that can decode values can tell: see
// VerifyValues.
func (r *Table) Verify(pace func(read int) error) error { return r.VerifyValues(pace, nil) }

// VerifyValues is Verify, and calls keyOf with each entry, deleted or not, in order. keyOf
// returns the entry's key or the zero Key: the index of keys must lead to exactly the entries
// that have one, each by its key. An error of keyOf says that the value cannot be decoded, and
// counts as damage.
func (r *Table) VerifyValues(pace func(read int) error, keyOf func(Entry) (Key, error)) error {
	v := verifier{r: r, pace: pace, keyOf: keyOf}
	if err := v.entries(); err != nil {
		return err
	}
	if err := v.index(&r.ids); err != nil {
		return err
	}
	if v.met != v.ids {
		return r.damage(r.ids.off, "ids that lead to other entries than those that have them")
	}
	if err := v.index(&r.keys); err != nil {
		return err
	}
	if keyOf != nil && v.metKeys != v.keys {
		return r.damage(r.keys.off, "keys that lead to other entries than those that have them")
	}
	return nil
}

// EachID gives the ids of some open sstables in order, those of deleted entries too, each with
// the index of its sstable and its position there. An error of each ends it. It reads a block
// of each sstable at a time.
func EachID(tables []*Table, each func(id uint64, at int, pos uint32) error) error {
	return eachItem(tables, func(r *Table) *index { return &r.ids }, func(i item) error { return each(i.hi, int(i.table), i.pos) })
}

// EachKey gives the keys of some open sstables in the same way.
func EachKey(tables []*Table, each func(key Key, at int, pos uint32) error) error {
	return eachItem(tables, func(r *Table) *index { return &r.keys }, func(i item) error {
		var k Key
		be.PutUint64(k[:], i.hi)
		be.PutUint64(k[8:], i.lo)
		return each(k, int(i.table), i.pos)
	})
}

func eachItem(tables []*Table, of func(*Table) *index, each func(item) error) (err error) {
	streams := make([]stream, len(tables))
	for k, r := range tables {
		if !r.hold() {
			return ErrClosed
		}
		defer func() { err = cmp.Or(err, r.release()) }()
		next := r.items(of(r))
		streams[k] = func() (item, bool, error) {
			i, ok, err := next()
			i.table = uint32(k)
			return i, ok, err
		}
	}
	return merge(streams, each)
}

type verifier struct {
	r     *Table
	pace  func(int) error
	keyOf func(Entry) (Key, error)
	read  int
	ids   uint64 // sum over all pairs of id and position
	met   uint64 // the same sum over the index

	keys, metKeys uint64 // the same sums for keys
}

func (v *verifier) done(read int) error {
	if v.read += read; v.read < outSlice || v.pace == nil {
		return nil
	}
	n := v.read
	v.read = 0
	return v.pace(n)
}

func (v *verifier) entries() (err error) {
	r := v.r
	s := r.Scan(0, r.n)
	s.all = true
	defer func() { err = cmp.Or(err, s.Close()) }()
	var last Entry
	var minID, maxID uint64
	queue := -1
	for s.Next() {
		e := s.Entry()
		at := r.blocks[r.blockAt(e.Pos)].off
		if e.Pos > 0 && e.Compare(last.Place) < 0 {
			return r.damage(at, "entries out of order")
		}
		if queue < 0 || e.Pos == r.queues[queue].To {
			queue++
		}
		q := r.queues[queue]
		if q.Queue != e.Queue || e.Pos == q.From && e.At != q.MinAt || e.Pos+1 == q.To && e.At != q.MaxAt {
			return r.damage(at, fmt.Sprintf("entry %d is not where the table of queues has it", e.Pos))
		}
		if e.Pos == 0 {
			minID = e.ID
		}
		minID, maxID = min(minID, e.ID), max(maxID, e.ID)
		v.ids += pairSum(e.ID, e.Pos)
		if v.keyOf != nil {
			key, err := v.keyOf(e)
			if err != nil {
				return r.damage(at, fmt.Sprintf("entry %d: %v", e.Pos, err))
			}
			if key != (Key{}) {
				hi, lo := key.halves()
				v.keys += keySum(hi, lo, e.Pos)
			}
		}
		last = e
		if err := v.done(s.read); err != nil {
			return err
		}
	}
	if s.Err() == nil && (minID != r.footer.minID || maxID != r.footer.maxID) {
		return r.damage(r.Bytes()-footerSize, "other ids than the footer says")
	}
	return s.Err()
}

// index checks an index. Its items must lead to different entries.
func (v *verifier) index(x *index) (err error) {
	r := v.r
	if !r.hold() {
		return ErrClosed
	}
	defer func() { err = cmp.Or(err, r.release()) }()
	next, led, last := r.items(x), newLive(r.n, groupWords), item{}
	for k := uint64(0); ; k++ {
		i, ok, err := next()
		if err != nil || !ok {
			return err
		}
		b := int(k / uint64(x.perBlock()))
		at, _ := x.place(b)
		switch {
		case k%uint64(x.perBlock()) == 0 && i.hi != x.firsts[b]:
			return r.damage(at, "a block of an index begins otherwise than its table says")
		case k > 0 && i.compare(last) < 0:
			return r.damage(at, "an index out of order")
		case !led.Kill(i.pos):
			return r.damage(at, "an index leads to an entry twice")
		case x.kind == kindKeys && !r.filter.may(i.hi):
			return r.damage(at, "a key that the filter does not let through")
		}
		last = i
		if x.kind == kindIDs {
			v.met += pairSum(i.hi, i.pos)
		} else {
			v.metKeys += keySum(i.hi, i.lo, i.pos)
		}
		if err := v.done(x.width); err != nil {
			return err
		}
	}
}

// pairSum is a number that tells pairs of id and position apart.
func pairSum(id uint64, pos uint32) uint64 {
	h := (id ^ uint64(pos)<<32 ^ uint64(pos)*0xff51afd7ed558ccd) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0xc4ceb9fe1a85ec53
	return h ^ h>>29
}

// keySum is pairSum for a key and a position.
func keySum(hi, lo uint64, pos uint32) uint64 { return pairSum(hi^pairSum(lo, pos), pos) }
