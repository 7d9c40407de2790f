package wal

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// heads is n bytes that look like a head of a frame of half a mebibyte wherever one may begin.
func heads(n int) []byte {
	unit := binary.LittleEndian.AppendUint32(nil, maxPiece/2)
	return slices.Repeat(unit, n/len(unit))
}

// TestEntriesThatLookLikeFrames: reading a log takes no longer for what entries hold that were released and
// whose segments are used again.
func TestEntriesThatLookLikeFrames(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	var last item
	for range 40 { // each segment is used several times
		last = add(t, l, 1, heads(20_000))
		l.Release(last.end)
	}
	add(t, l, 1, []byte("end"))
	must(t, l.Close())

	var bytes atomic.Int64
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read {
			bytes.Add(int64(c.Len))
		}
		return nil
	})
	all, total := segmentsOf(t, d, "/log"), int64(0)
	for range all {
		total += windowSize // one read of the window for each file, and some for its frames
	}
	_, err := Read(d, "/log", cfg, last.end, func(Entry) error { return nil })
	must(t, err)
	if n := bytes.Swap(0); n > 8*total {
		t.Errorf("%d bytes were read for segments of %d", n, total)
	}
	must(t, Salvage(d, all, cfg, last.end, func(Entry) error { return nil }, func(Gap) error { return nil }))
	if n := bytes.Load(); n > 8*total {
		t.Errorf("%d bytes were read to salvage segments of %d", n, total)
	}
}

// TestProofInTheNextSegment: a segment of which nothing is left is no torn end where the next one, whose
// header is broken, says how far the log was synced.
func TestProofInTheNextSegment(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	for i := range 28 {
		add(t, l, 1, text(i, 5000))
	}
	must(t, l.Close())
	before := segmentName("/log", 1)
	first, second := segmentName("/log", 2), segmentName("/log", 3)
	d.Zero(first, headerSize, minSegment-headerSize)
	d.Flip(second, 20, 1)
	if _, _, _, err := closing(tryOpen(d, cfg, 0)); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	gaps := 0
	must(t, Salvage(d, []string{before, first}, cfg, 0, func(Entry) error { return nil }, func(Gap) error { gaps++; return nil }))
	must(t, Salvage(d, []string{before, first, second}, cfg, 0, func(Entry) error { return nil }, func(Gap) error { gaps += 10; return nil }))
	if gaps != 10 {
		t.Errorf("%d gaps were told", gaps)
	}
}
