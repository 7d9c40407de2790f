package sstable

import (
	"hash/crc32"
	"math/bits"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

const (
	liveVersion = 1
	liveHead    = 24      // the head of an encoded Live
	liveChunk   = 1 << 16 // positions that are coded together
	chunkWords  = liveChunk / 64
	mostListed  = 2048 // the most positions listed in a chunk; more are coded as bits
)

// How a chunk is coded:
const (
	allAlive  = iota
	allDead   // nothing follows
	deadList  // the deleted entries
	aliveList // the live entries
	deadBits
)

// AppendLive encodes which entries are deleted, and returns how many are alive by that. An
// entry that is deleted meanwhile may count or not.
func (r *Table) AppendLive(b []byte) (_ []byte, alive int) {
	at := len(b)
	b = append(b, make([]byte, liveHead)...)
	for from := uint32(0); from < r.n; from += liveChunk {
		var n int
		b, n = r.Live.appendChunk(b, from, min(r.n, from+liveChunk))
		alive += n
	}
	h := b[at:]
	le.PutUint32(h[4:], liveVersion)
	le.PutUint64(h[8:], r.number)
	le.PutUint32(h[16:], r.n)
	le.PutUint32(h[20:], uint32(len(h)-liveHead))
	le.PutUint32(h, crc32.Update(r.seed, castagnoli, h[4:]))
	return b, alive
}

// appendChunk encodes which entries in [from, to) are deleted, and returns how many are alive
// by that.
func (l *Live) appendChunk(b []byte, from, to uint32) (_ []byte, alive int) {
	var words [chunkWords]uint64 // a copy: more may be deleted meanwhile
	dead, n := 0, int(to-from)
	used := words[:(n+63)/64]
	for i := range used {
		used[i] = l.word(from/64 + uint32(i))
		dead += bits.OnesCount64(used[i])
	}
	tail := -n & 63 // bits after the last entry, which are set
	dead -= tail
	switch {
	case dead == 0:
		return append(b, allAlive), n
	case dead == n:
		return append(b, allDead), 0
	case dead <= mostListed:
		if tail > 0 {
			used[len(used)-1] &= ^uint64(0) >> tail
		}
		return appendList(append(b, deadList), used, dead), n - dead
	case n-dead <= mostListed:
		for i := range used {
			used[i] = ^used[i]
		}
		return appendList(append(b, aliveList), used, n-dead), n - dead
	}
	b = append(b, deadBits)
	for _, w := range used {
		b = le.AppendUint64(b, w)
	}
	return b, n - dead
}

// appendList appends the positions of the n bits that are set.
func appendList(b []byte, words []uint64, n int) []byte {
	b = le.AppendUint16(b, uint16(n))
	for i, w := range words {
		for ; w != 0; w &= w - 1 {
			b = le.AppendUint16(b, uint16(i*64+bits.TrailingZeros64(w)))
		}
	}
	return b
}

// RestoreLive deletes the entries that were deleted when AppendLive made the start of b, and
// returns the rest of b. If the bytes are of another sstable or damaged, it changes nothing
// and returns a *vfs.DamageError with the offset in b.
func (r *Table) RestoreLive(b []byte) (rest []byte, err error) {
	damaged := func(reason string) ([]byte, error) {
		return nil, &vfs.DamageError{What: ErrDamaged, File: "who is dead in " + r.name, Reason: reason}
	}
	if len(b) < liveHead {
		return damaged("it ends")
	}
	size := le.Uint32(b[20:])
	if uint64(size) > uint64(len(b)-liveHead) {
		return damaged("it ends")
	}
	b, rest = b[:liveHead+size], b[liveHead+size:]
	if crc32.Update(r.seed, castagnoli, b[4:]) != le.Uint32(b) {
		return damaged("the checksum does not match, or it is of another sstable")
	}
	if v := le.Uint32(b[4:]); v > liveVersion {
		return nil, ErrNewer
	}
	if le.Uint64(b[8:]) != r.number || le.Uint32(b[16:]) != r.n {
		return damaged("it is of another sstable")
	}
	was, ok := decodeLive(b[liveHead:], r.n)
	if !ok {
		return damaged("what it says cannot be")
	}
	for i, w := range was.dead {
		r.kill(uint32(i), w)
	}
	return rest, nil
}

// decodeLive decodes the chunks of n entries.
func decodeLive(b []byte, n uint32) (*Live, bool) {
	l := newLive(n, groupWords)
	for from := uint32(0); from < n; from += liveChunk {
		to := min(n, from+liveChunk)
		if len(b) == 0 {
			return nil, false
		}
		kind := b[0]
		b = b[1:]
		switch kind {
		case allAlive:
		case allDead:
			l.KillRange(from, to)
		case deadList, aliveList:
			if len(b) < 2 || len(b) < 2+2*int(le.Uint16(b)) {
				return nil, false
			}
			k := int(le.Uint16(b))
			list := b[2:][:2*k]
			b = b[2+2*k:]
			next := from // after the last one listed
			for ; len(list) > 0; list = list[2:] {
				pos := from + uint32(le.Uint16(list))
				if pos < next || pos >= to {
					return nil, false
				}
				if kind == deadList {
					l.Kill(pos)
				} else {
					l.KillRange(next, pos)
				}
				next = pos + 1
			}
			if kind == aliveList {
				l.KillRange(next, to)
			}
		case deadBits:
			words := (to - from + 63) / 64
			if len(b) < int(words)*8 {
				return nil, false
			}
			for i := range words {
				l.kill(from/64+i, le.Uint64(b[8*i:]))
			}
			b = b[8*words:]
		default:
			return nil, false
		}
	}
	return l, len(b) == 0
}
