package codec

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Encoded failures are one after another, oldest first, to the end: of each the instant in Unix
// milliseconds (8 bytes), the attempt (4), the worker (its length in 1 byte, and it) and the
// reason (2, and it). All are big-endian, so that scripts can write them.

// AppendFailure writes a failure. Texts beyond what their lengths can say are cut.
func AppendFailure(b []byte, f *engine.Failure) []byte {
	worker, reason := f.Worker[:min(len(f.Worker), math.MaxUint8)], f.Reason[:min(len(f.Reason), math.MaxUint16)]
	b = binary.BigEndian.AppendUint64(b, uint64(f.At.UnixMilli()))
	b = binary.BigEndian.AppendUint32(b, f.Attempt)
	b = append(append(b, byte(len(worker))), worker...)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(reason))), reason...)
}

// AddFailure returns encoded failures with one more, without the oldest if there would be too
// many. Damaged failures are dropped. It copies.
func AddFailure(all []byte, f *engine.Failure) []byte {
	r, ends := Reader{B: all}, []int{0}
	for len(r.B) > 0 {
		r.failureParts()
		ends = append(ends, len(all)-len(r.B))
	}
	if r.Err != nil {
		return AppendFailure(nil, f)
	}
	from := ends[max(0, len(ends)-engine.MaxFailures)]
	return AppendFailure(append([]byte(nil), all[from:]...), f)
}

// TakeFailures returns the encoded failures that take the next n bytes, without copying them.
func (r *Reader) TakeFailures(n uint64) []byte {
	all := r.Take(n)
	in := Reader{B: all}
	for k := 0; len(in.B) > 0; k++ {
		if in.failureParts(); k == engine.MaxFailures {
			in.Fail()
		}
	}
	if in.Err != nil || len(all) == 0 {
		r.Fail()
	}
	return all
}

// Failures reads failures to the end. Of damaged ones it returns none.
func (r *Reader) Failures() (all []engine.Failure) {
	for len(r.B) > 0 {
		if all = append(all, r.failure()); len(all) > engine.MaxFailures {
			r.Fail()
		}
	}
	if r.Err != nil {
		return nil
	}
	return all
}

// LastReason returns the reason of the newest of encoded failures; "": there are none, or they
// are damaged.
func LastReason(all []byte) (reason []byte) {
	for r := (Reader{B: all}); len(r.B) > 0; {
		_, _, _, reason = r.failureParts()
	}
	return reason
}

func (r *Reader) failure() engine.Failure {
	at, attempt, worker, reason := r.failureParts()
	return engine.Failure{At: time.UnixMilli(at).UTC(), Attempt: attempt, Worker: string(worker), Reason: string(reason)}
}

func (r *Reader) failureParts() (at int64, attempt uint32, worker, reason []byte) {
	return int64(r.Uint(8)), uint32(r.Uint(4)), r.Take(r.Uint(1)), r.Take(r.Uint(2))
}
