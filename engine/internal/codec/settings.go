package codec

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// AppendSettings writes settings. First comes the priority plus one, as a Uvarint. The other
// numbers and spans follow as Varints, in the order of the fields. Last are the rate in 8
// bytes, and the backoff as in a policy. 0 means unset. Isolate is in the bits above those of
// the attempts.
func AppendSettings(b []byte, s *engine.Settings) []byte {
	d := &s.Defaults
	priority := uint64(0)
	if d.Priority != nil {
		priority = uint64(*d.Priority) + 1
	}
	b = binary.AppendUvarint(b, priority)
	attempts := int64(d.MaxAttempts)
	if d.Isolate != nil && !*d.Isolate {
		attempts |= 1 << 32
	} else if d.Isolate != nil {
		attempts |= 2 << 32
	}
	for _, n := range []int64{
		attempts, int64(d.TTR), int64(d.ExpireAfter), int64(d.Remember),
		int64(s.DeadKeep), int64(s.History), s.DeadMax, s.HistoryMax, s.MaxPending, s.InFlight, s.Burst,
	} {
		b = binary.AppendVarint(b, n)
	}
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(s.Rate))
	b = binary.AppendUvarint(b, uint64(len(d.Backoff)))
	for _, delay := range d.Backoff {
		b = binary.AppendUvarint(b, uint64(delay))
	}
	return b
}

// Settings reads settings that AppendSettings wrote.
func (r *Reader) Settings() (s engine.Settings) {
	d := &s.Defaults
	switch priority := r.Uvarint(); {
	case priority > math.MaxUint32+1:
		r.Fail()
	case priority > 0:
		d.Priority = new(uint32(priority - 1))
	}
	attempts := r.Varint()
	switch isolate := attempts >> 32; isolate {
	case 0:
	case 1, 2:
		d.Isolate = new(isolate == 2)
	default:
		r.Fail()
	}
	d.MaxAttempts = uint32(attempts)
	for _, span := range []*time.Duration{&d.TTR, &d.ExpireAfter, &d.Remember, &s.DeadKeep, &s.History} {
		*span = time.Duration(r.Varint())
	}
	for _, n := range []*int64{&s.DeadMax, &s.HistoryMax, &s.MaxPending, &s.InFlight, &s.Burst} {
		*n = r.Varint()
	}
	s.Rate = math.Float64frombits(r.Uint(8))
	if n := r.Count(1); n > 0 {
		d.Backoff = make([]time.Duration, n)
		for i := range d.Backoff {
			d.Backoff[i] = r.Duration()
		}
	}
	return s
}
