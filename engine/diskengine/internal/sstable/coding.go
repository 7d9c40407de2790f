package sstable

import (
	"github.com/klauspost/compress/zstd"
)

// How the payload of a block of entries is coded.
const (
	plain  = 0
	packed = 1 // by zstd, after the length that it has when it is unpacked
)

const (
	packedHead = 4         // bytes of that length
	maxPacked  = 256 << 10 // payloads that are longer stand as they are: packing them takes longer than a slice of work should
)

// packer and unpacker may be used by many at once: two of them pack, as one flushes and one merges.
// They have no goroutines for whole payloads, but channels, which must not be made within a bubble
// of a test: others could not use them.
var (
	packer = made(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithAllLitEntropyCompression(true),
		zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(maxPacked), zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true)))
	unpacker = made(zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxPacked),
		zstd.WithDecoderMaxWindow(maxPacked), zstd.WithDecodeAllCapLimit(true), zstd.IgnoreChecksum(true)))
)

func init() { packer.EncodeAll([]byte{0}, nil) } // which makes them

// made returns what options that are constant make.
func made[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pack returns a payload packed, in room, if that takes an eighth less.
func pack(room, payload []byte) (b []byte, ok bool) {
	if len(payload) > maxPacked {
		return room, false
	}
	b = packer.EncodeAll(payload, le.AppendUint32(room[:0], uint32(len(payload))))
	return b, len(b) <= len(payload)-len(payload)/8
}

// unpack returns the payload that was packed, in room from the buffer, or a reason why it cannot be
// read. No more memory is taken than maxPacked, whatever is there.
func unpack(b []byte, buf *buffer) (payload []byte, reason string) {
	if len(b) < packedHead {
		return nil, "no room for a packed block"
	}
	n := le.Uint32(b)
	if n > maxPacked {
		return nil, "a packed block that says it is too long"
	}
	payload, err := unpacker.DecodeAll(b[packedHead:], buf.unpackedFor(int(n))[:0])
	if err != nil || len(payload) != int(n) {
		return nil, "a block that cannot be unpacked"
	}
	return payload, ""
}
