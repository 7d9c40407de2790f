package codec

import (
	"encoding/binary"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// The usual values of a policy, which are not written. They are part of every format, so they
// do not change with the defaults of the root package.
const (
	UsualPriority    = 1024
	UsualMaxAttempts = 20
	UsualTTR         = time.Minute
)

// Bits of the first byte of a policy.
const (
	hasPriority byte = 1 << iota
	hasMaxAttempts
	hasTTR
	hasExpireAfter
	hasBackoff
	hasRemember
	notIsolated
	policyEnd
)

// AppendPolicy writes a policy: a byte that says which fields differ from the usual, then
// those fields. Priority and max attempts take 4 bytes; time to run, expire after and
// remember are nanoseconds in 8. All are big-endian, so that scripts can read them. The
// backoff is a Uvarint count, and nanoseconds as Uvarints. Negative spans become 0.
func AppendPolicy(b []byte, p *engine.Policy) []byte {
	at, has := len(b), byte(0)
	b = append(b, 0)
	if p.Priority != UsualPriority {
		has, b = has|hasPriority, binary.BigEndian.AppendUint32(b, p.Priority)
	}
	if p.MaxAttempts != UsualMaxAttempts {
		has, b = has|hasMaxAttempts, binary.BigEndian.AppendUint32(b, p.MaxAttempts)
	}
	if p.TTR != UsualTTR {
		has, b = has|hasTTR, binary.BigEndian.AppendUint64(b, uint64(max(0, p.TTR)))
	}
	if p.ExpireAfter > 0 {
		has, b = has|hasExpireAfter, binary.BigEndian.AppendUint64(b, uint64(p.ExpireAfter))
	}
	if p.Remember > 0 {
		has, b = has|hasRemember, binary.BigEndian.AppendUint64(b, uint64(p.Remember))
	}
	if !p.Isolate {
		has |= notIsolated
	}
	if len(p.Backoff) > 0 {
		has, b = has|hasBackoff, binary.AppendUvarint(b, uint64(len(p.Backoff)))
		for _, d := range p.Backoff {
			b = binary.AppendUvarint(b, uint64(max(0, d)))
		}
	}
	b[at] = has
	return b
}

// Policy reads a policy that AppendPolicy wrote.
func (r *Reader) Policy() engine.Policy {
	p := engine.Policy{Priority: UsualPriority, MaxAttempts: UsualMaxAttempts, TTR: UsualTTR}
	has := r.Byte()
	p.Isolate = has&notIsolated == 0
	if has >= policyEnd {
		r.Fail()
	}
	if has&hasPriority != 0 {
		p.Priority = uint32(r.Uint(4))
	}
	if has&hasMaxAttempts != 0 {
		p.MaxAttempts = uint32(r.Uint(4))
	}
	if has&hasTTR != 0 {
		p.TTR = r.span(r.Uint(8))
	}
	if has&hasExpireAfter != 0 {
		p.ExpireAfter = r.span(r.Uint(8))
	}
	if has&hasRemember != 0 {
		p.Remember = r.span(r.Uint(8))
	}
	if has&hasBackoff != 0 {
		if n := r.Count(1); n > 0 {
			p.Backoff = make([]time.Duration, n)
			for i := range p.Backoff {
				p.Backoff[i] = r.Duration()
			}
		}
	}
	return p
}
