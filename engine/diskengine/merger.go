package diskengine

import (
	"encoding/binary"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tarryhq/tarry/engine/internal/codec"
)

// sumMerger adds up the counts of a minute. Its name is stored with the data.
var sumMerger = &pebble.Merger{
	Name: "tarry.sum",
	Merge: func(_, value []byte) (pebble.ValueMerger, error) {
		s := new(sum)
		return s, s.add(value)
	},
}

// sum is a count under addition. One that adds up to nothing stays until the mark
// has passed it: Pebble can drop such a value by itself, but then brings back what
// an earlier compaction made of it.
type sum struct{ n int64 }

func appendSum(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }

func parseSum(v []byte) (int64, error) {
	if len(v) != 8 {
		return 0, codec.ErrMalformed
	}
	return int64(binary.BigEndian.Uint64(v)), nil
}

func (s *sum) add(value []byte) error {
	n, err := parseSum(value)
	s.n += n
	return err
}

// MergeNewer implements pebble.ValueMerger.
func (s *sum) MergeNewer(value []byte) error { return s.add(value) }

// MergeOlder implements pebble.ValueMerger.
func (s *sum) MergeOlder(value []byte) error { return s.add(value) }

// Finish implements pebble.ValueMerger.
func (s *sum) Finish(bool) ([]byte, io.Closer, error) { return appendSum(nil, s.n), nil, nil }
