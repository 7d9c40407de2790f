package tarry

import (
	"cmp"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// A PushOption sets a property of a message to push. Later options win.
type PushOption interface{ apply(m *Draft) }

type pushOption func(m *Draft)

func (o pushOption) apply(m *Draft) { o(m) }

// Due is when a message may be handled. In and At make it, as an option of a push or the
// new time for Reschedule and Rearm.
type Due struct{ when When }

func (d Due) apply(m *Draft) { m.Due = d.when }

// When returns the due time in the form that engines take.
func (d Due) When() When { return d.when }

// In makes a message due d from now, by the engine's clock. d must not be negative. A
// message without In and At is due at once.
func In(d time.Duration) Due { return Due{When{In: d}} }

// At makes a message due at t, rounded up to the millisecond; at once if t is in the past.
// t must not be after the year 9999.
func At(t time.Time) Due { return Due{When{At: t}} }

// Key gives the message the caller's own name, 1 to 512 bytes of UTF-8, unique among the
// queue's live messages: an order id. The key is used to cancel, reschedule, look up and
// claim the message, and to recognise a repeated push.
func Key(key string) PushOption {
	return pushOption(func(m *Draft) { m.Key = key })
}

// OnConflict says what happens when a live message holds the key. Default Reject.
func OnConflict(c Conflict) PushOption {
	return pushOption(func(m *Draft) { m.OnConflict = c })
}

// ReplaceLeased lets the holder of a lease replace the message with the same key: new content
// and due time, attempt 0. The lease ends. ErrLeaseLost when token is not the newest lease of
// the live message with that key. A handler can so keep its progress in its message; it then
// returns Settled.
func ReplaceLeased(token string) PushOption {
	return pushOption(func(m *Draft) { m.OnConflict, m.Token = Replace, token })
}

// Priority orders messages that are ready at the same time: lower goes first. Default: the
// queue's settings, else 1024.
func Priority(p uint32) PushOption {
	return pushOption(func(m *Draft) { m.Priority = &p })
}

// Header adds a header, a name and a value, to the message. At most 64, of 8 KiB together.
func Header(name, value string) PushOption {
	return pushOption(func(m *Draft) {
		m.Headers = append(m.Headers, engine.Header{Name: name, Value: value})
	})
}

// ContentType sets the media type of the body; a Topic sets it from its codec.
func ContentType(t string) PushOption {
	return pushOption(func(m *Draft) { m.ContentType = t })
}

// MaxAttempts bounds how often the message is leased before it is dead: 1 to a million.
// Default: the queue's settings, else 20.
func MaxAttempts(n uint32) PushOption {
	return pushOption(func(m *Draft) { m.MaxAttempts = n })
}

// Backoff sets the delay after the first, second, … failed attempt; the last entry repeats.
// At most 64. Default: the queue's settings, else 1 s doubling up to 1 h, ±10 %.
func Backoff(delays ...time.Duration) PushOption {
	return pushOption(func(m *Draft) { m.Backoff = delays })
}

// TTR sets how long a lease of the message lasts, unless the lease call asks for another
// time. 1 ms to 24 h. Default: the queue's settings, else 1 min. Workers renew leases by
// themselves.
func TTR(d time.Duration) PushOption {
	return pushOption(func(m *Draft) { m.TTR = d })
}

// ExpireAfter drops the message if it would be leased later than d after its due time. 0:
// never. Default: the queue's settings, else never.
func ExpireAfter(d time.Duration) PushOption {
	return pushOption(func(m *Draft) { m.ExpireAfter = cmp.Or(d, engine.Never) })
}

// Remember keeps the message's key for d after an ack, cancel or expiry. Meanwhile a push
// with that key creates no message and reports how the old one ended. 0: not at all; at
// most ten years. Default: the queue's settings, else not at all.
func Remember(d time.Duration) PushOption {
	return pushOption(func(m *Draft) { m.Remember = cmp.Or(d, engine.Never) })
}

// Isolate says whether the message is isolated from its second attempt on, so that a
// message that kills its process takes no other with it. The lease of an isolated message
// ends separately from those leased with it. After a lapse the message is leased alone.
func Isolate(on bool) PushOption {
	return pushOption(func(m *Draft) { m.Terms.Isolate = &on })
}

// NewDraft returns a message to push with the options applied, for
// Client.PushMany and Client.PushAtomic.
func NewDraft(queue string, body []byte, opts ...PushOption) Draft {
	m := Draft{
		Queue:   queue,
		Content: engine.Content{Body: body},
	}
	for _, o := range opts {
		o.apply(&m)
	}
	return m
}
