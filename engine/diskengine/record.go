package diskengine

import (
	"encoding/binary"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// inlineBody is the size up to which a body is part of its message's record.
// Larger ones have an entry of their own, so that a retry does not write them
// again.
const inlineBody = 1 << 10

const recordVersion = 2

const (
	recordExpires byte = 1 << iota
	recordDead
	recordBodyApart
	recordLapsed
)

// record is a message as it is stored. While the message is leased the attempt
// and what the lease adds are in the table of leases.
type record struct {
	id        engine.ID // part of the key
	due       int64
	created   int64
	expires   int64 // never: does not
	attempt   uint32
	dead      bool
	died      int64 // when dead
	lapsed    bool  // token is that of a lease that lapsed and may still settle
	token     token.Nonce
	key       string
	lastError string
	engine.Policy
	engine.Content      // Body is nil when it stands apart
	apart          bool // the body has its own entry
}

func (r *record) position() position { return position{r.due, r.id} }

func (r *record) grave() position { return position{r.died, r.id} }

// expired reports whether a message that is not leased is past its expiry.
func (r *record) expired(now int64) bool {
	return !r.dead && r.expires != never && now > r.expires
}

// setDue sets the due time and the expiry that follows from it.
func (r *record) setDue(due int64) {
	r.due, r.expires = due, never
	if r.ExpireAfter > 0 {
		r.expires = time.UnixMilli(due).Add(r.ExpireAfter).UnixMilli()
	}
}

// append writes the record's value.
func (r *record) append(b []byte) []byte {
	var flags byte
	if r.expires != never {
		flags |= recordExpires
	}
	if r.dead {
		flags |= recordDead
	}
	if r.apart {
		flags |= recordBodyApart
	}
	if r.lapsed {
		flags |= recordLapsed
	}
	b = append(b, recordVersion, flags)
	b = binary.AppendVarint(b, r.due)
	b = binary.AppendVarint(b, r.created)
	if r.expires != never {
		b = binary.AppendVarint(b, r.expires)
	}
	b = binary.AppendUvarint(b, uint64(r.attempt))
	if r.dead {
		b = binary.AppendVarint(b, r.died)
	}
	if r.lapsed {
		b = append(b, r.token[:]...)
	}
	b = codec.AppendPolicy(b, &r.Policy)
	b = codec.AppendString(b, r.key)
	b = codec.AppendString(b, r.lastError)
	content := r.Content
	if r.apart {
		content.Body = nil
	}
	return codec.AppendContent(b, &content)
}

// parseRecord reads what append wrote. Nothing in the record aliases v.
func parseRecord(id engine.ID, v []byte) (*record, error) {
	in := codec.Reader{B: v}
	if in.Byte() != recordVersion {
		in.Fail()
	}
	flags := in.Byte()
	r := &record{id: id, expires: never, apart: flags&recordBodyApart != 0, dead: flags&recordDead != 0, lapsed: flags&recordLapsed != 0}
	if flags >= recordLapsed<<1 {
		in.Fail()
	}
	r.due = in.Varint()
	r.created = in.Varint()
	if flags&recordExpires != 0 {
		r.expires = in.Varint()
	}
	r.attempt = in.Uint32()
	if r.dead {
		r.died = in.Varint()
	}
	if r.lapsed {
		copy(r.token[:], in.Take(uint64(len(r.token))))
	}
	r.Policy = in.Policy()
	r.key = in.String()
	r.lastError = in.String()
	r.Content = in.Content()
	if err := in.End(); err != nil {
		return nil, err
	}
	if len(r.Body) > inlineBody || r.apart && r.Body != nil {
		return nil, codec.ErrMalformed
	}
	return r, nil
}

// info describes the message without what a lease adds.
func (r *record) info(queue string, now int64) engine.Info {
	i := engine.Info{
		ID: r.id, Queue: queue, Key: r.key, Due: instant(r.due), Created: instant(r.created), Expires: instant(r.expires),
		Attempt: r.attempt, Content: r.Content, Policy: r.Policy, LastError: r.lastError,
	}
	if i.State = r.state(now); r.dead {
		i.Died = instant(r.died)
	}
	return i
}

// state is that of a message that is not leased.
func (r *record) state(now int64) engine.State {
	if r.dead {
		return engine.Dead
	}
	return waitingState(r.due, now)
}

func waitingState(due, now int64) engine.State {
	if due <= now {
		return engine.Ready
	}
	return engine.Scheduled
}

// instant is a time for Unix milliseconds; never is the zero time.
func instant(ms int64) time.Time {
	if ms == never {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
