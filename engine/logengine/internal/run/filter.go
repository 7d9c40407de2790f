package run

import (
	"math/bits"

	"github.com/FastFilter/xorfilter"
)

// filter tells which of the keys in some blocks of the index are surely not there: of those
// that are not, all but one in 256. The zero one knows nothing.
type filter struct{ fuse xorfilter.BinaryFuse[uint8] }

func (f *filter) may(hi uint64) bool { return len(f.fuse.Fingerprints) == 0 || f.fuse.Contains(hi) }

// appendFilter appends one over sorted numbers. One that cannot be made, which does not happen
// with hashes, knows nothing.
func appendFilter(b []byte, builder *xorfilter.BinaryFuseBuilder, sorted []uint64) []byte {
	f, err := xorfilter.BuildBinaryFuse[uint8](builder, sorted)
	if err != nil {
		f = xorfilter.BinaryFuse[uint8]{}
	}
	b = le.AppendUint64(b, f.Seed)
	b = le.AppendUint32(b, f.SegmentLength)
	b = le.AppendUint32(b, f.SegmentCount)
	return append(b, f.Fingerprints...)
}

// decodeFilter reads one, and reports whether it can be asked without harm.
func decodeFilter(b []byte) (f filter, ok bool) {
	if len(b) < filterHead {
		return f, false
	}
	length, count := le.Uint32(b[8:]), le.Uint32(b[12:])
	prints := b[filterHead:]
	if len(prints) == 0 {
		return f, length == 0 && count == 0
	}
	if bits.OnesCount32(length) != 1 || count == 0 || (uint64(count)+2)*uint64(length) != uint64(len(prints)) {
		return f, false
	}
	f.fuse = xorfilter.BinaryFuse[uint8]{
		Seed:          le.Uint64(b),
		SegmentLength: length, SegmentLengthMask: length - 1,
		SegmentCount: count, SegmentCountLength: count * length,
		Fingerprints: append(make([]byte, 0, len(prints)), prints...),
	}
	return f, true
}
