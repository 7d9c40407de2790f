package store

import (
	"cmp"
	"errors"
	"slices"
	"syscall"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// value is an entry, or why it cannot be decoded.
type value struct {
	sstable.Entry
	err error
}

// Head returns the entry at a spot. A long value may be cut: it has all that comes before the
// headers and the body.
func (r *Reader) Head(at Spot) (sstable.Entry, error) { return r.value(at, false) }

// Whole returns the whole entry at a spot.
func (r *Reader) Whole(at Spot) (sstable.Entry, error) { return r.value(at, true) }

func (r *Reader) value(at Spot, whole bool) (sstable.Entry, error) {
	v, ok := r.values[at]
	if ok && !(whole && v.Cut) {
		return v.Entry, v.err
	}
	if err := r.readError(at); err != nil {
		return sstable.Entry{}, err
	}
	lacks := &r.lacks.heads
	if whole {
		lacks = &r.lacks.values
		r.bytes -= len(v.Value)
		delete(r.values, at)
	}
	*lacks = append(*lacks, at)
	return sstable.Entry{}, ErrLack
}

// read reads values up to engine.AnswerBytes, which the last one may exceed. Values may
// be large, so it reads one, then two, then four and so on, each time in the order of the
// sstable. A block is thus read a few times at most. Of long values it reads at least most bytes;
// negative: all.
func (r *Reader) read(spots []Spot, most int) error {
	if len(r.blocks) > 0 {
		spots = slices.DeleteFunc(slices.Clone(spots), func(at Spot) bool { return r.readError(at) != nil })
	}
	bytes := 0
	for n := 1; len(spots) > 0 && bytes < engine.AnswerBytes; n = min(2*n, StepItems) {
		some := slices.Clone(spots[:min(len(spots), n)])
		spots = spots[len(some):]
		slices.SortFunc(some, func(a, b Spot) int {
			return cmp.Or(cmp.Compare(a.Src.Number(), b.Src.Number()), cmp.Compare(a.Pos, b.Pos))
		})
		some = slices.Compact(some)
		for len(some) > 0 && bytes < engine.AnswerBytes {
			n := 1
			for n < len(some) && some[n].Src == some[0].Src {
				n++
			}
			read, err := r.readOf(some[0].Src, some[:n], most, engine.AnswerBytes-bytes)
			if err != nil {
				return err
			}
			bytes += read
			some = some[n:]
		}
	}
	return nil
}

// readOf reads values of one sstable until they have room bytes.
func (r *Reader) readOf(src *Source, spots []Spot, most, room int) (bytes int, err error) {
	defer func() { r.bytes += bytes }()
	for len(spots) > 0 {
		positions := make([]uint32, len(spots))
		for i, s := range spots {
			positions[i] = s.Pos
		}
		done, tooShort := 0, false
		err := src.GetEach(positions, most, func(e sstable.Entry) bool {
			at := spots[done]
			if e.Cut && checkValue(src.Area, e.Value) != nil { // its head is longer
				tooShort = true
				return false
			}
			done++
			if err := checkValue(src.Area, e.Value); err != nil {
				put(&r.values, at, value{err: &UnreadableError{src.Misread(e.Pos, err), at}})
				return true
			}
			e.Value = slices.Clone(e.Value)
			put(&r.values, at, value{Entry: e})
			bytes += len(e.Value)
			return bytes < room
		})
		switch {
		case tooShort && err == nil:
			most, spots = -1, spots[done:]
			continue
		case err == nil, errors.Is(err, sstable.ErrClosed): // it was merged away: the next step knows
			return bytes, nil
		case !IsUnreadable(err), done == len(spots): // all were read: the error is of closing a merged sstable
			return bytes, err
		}
		put(&r.blocks, spots[done].block(), err) // not tried again: it may have taken long to fail
		for to := src.Reach(spots[done].Pos, 1); done < len(spots) && spots[done].Pos < to; done++ {
		}
		spots = spots[done:]
	}
	return bytes, nil
}

// readError returns why the block of a value cannot be read; nil: it can, or was not tried.
func (r *Reader) readError(at Spot) error {
	if len(r.blocks) == 0 {
		return nil
	}
	if err := r.blocks[at.block()]; err != nil {
		return &UnreadableError{err, at}
	}
	return nil
}

// block is the first entry of the block that a spot is in.
func (s Spot) block() Spot { return Spot{Src: s.Src, Pos: s.Src.Begin(s.Pos)} }

// checkValue returns an error if the value of an entry of an sstable cannot be decoded.
func checkValue(a memtable.Area, b []byte) error {
	if !a.IsMessage() {
		_, value, err := record.ParseKeyed(b)
		if err == nil && a == memtable.Listed {
			_, err = record.ParseHistoryEntry(value)
		} else if err == nil {
			_, err = record.ParseTrace(value)
		}
		return err
	}
	_, _, content, err := record.ParseStored(b)
	if err == nil {
		_, err = record.ParseHead(content)
	}
	return err
}

// UnreadableError is the error of an entry in a block that cannot be read.
type UnreadableError struct {
	error
	At Spot
}

// Unwrap returns what is damaged.
func (u *UnreadableError) Unwrap() error { return u.error }

// IsUnreadable reports whether an error says that part of an sstable is corrupt, or that the
// disk could not read it.
func IsUnreadable(err error) bool {
	return errors.Is(err, sstable.ErrDamaged) || errors.Is(err, syscall.EIO)
}
