package sstable

import (
	"github.com/klauspost/compress/zstd"
)

// How the payload of a block of entries is coded:
const (
	plain  = 0
	packed = 1 // by zstd, after its unpacked length
)

const (
	packedHead = 4         // bytes of the unpacked length
	maxPacked  = 256 << 10 // longer payloads stay plain: packing them takes longer than a slice of work should
)

// Many goroutines may use packer and unpacker. At most two pack at a time: one flushes, one
// merges. Both start no goroutines for whole payloads, but they have channels. These must not
// be made within a bubble of a test: other tests could not use them.
var (
	packer = made(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithAllLitEntropyCompression(true),
		zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(maxPacked), zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true)))
	unpacker = made(zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxPacked),
		zstd.WithDecoderMaxWindow(maxPacked), zstd.WithDecodeAllCapLimit(true), zstd.IgnoreChecksum(true)))
)

func init() { packer.EncodeAll([]byte{0}, nil) } // makes the channels

// made returns v, and panics on an error: the options are constant.
func made[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pack packs a payload into room. ok says that this takes at least an eighth less.
func pack(room, payload []byte) (b []byte, ok bool) {
	if len(payload) > maxPacked {
		return room, false
	}
	b = packer.EncodeAll(payload, le.AppendUint32(room[:0], uint32(len(payload))))
	return b, len(b) <= len(payload)-len(payload)/8
}

// unpack unpacks a payload into the buffer, or returns a reason why it cannot. It takes no
// more memory than maxPacked, whatever b says.
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
