package engine

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a message, a lease and a call, the same for every engine. The client checks
// each of them with a function of this file, so what reaches an engine is within them.
const (
	MaxQueueBytes  = 200       // bytes of a queue's name
	MaxKeyBytes    = 512       // bytes of a key
	MaxHeaders     = 64        // headers of a message
	MaxHeaderBytes = 8 << 10   // bytes of all header names and values together
	MaxBackoffs    = 64        // entries of a backoff schedule
	MaxMaxAttempts = 1_000_000 // leases of a message
	MinTTR         = time.Millisecond
	MaxTTR         = 24 * time.Hour
	MaxRemember    = 10 * 365 * 24 * time.Hour
	MaxWorkerBytes = 100     // bytes of a worker's name
	MaxTokenBytes  = 128     // bytes of a lease's token
	MaxLease       = 1000    // messages of one lease call
	MaxBatch       = 10_000  // messages, refs or settlements of one call
	MaxAtomic      = 1000    // messages of an atomic push
	MaxAtomicBytes = 8 << 20 // bytes of their bodies, headers and keys together
	MaxYear        = 9999    // of a due time: RFC 3339 ends there
)

const queueChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"

var queueChar = func() (ok [256]bool) {
	for _, c := range []byte(queueChars) {
		ok[c] = true
	}
	return ok
}()

// CheckQueue returns an ErrInvalid unless a queue may have that name: 1 to 200 bytes of
// A-Za-z0-9-+/;.$_(), the first not a -.
func CheckQueue(op, queue string) error {
	switch {
	case queue == "":
		return Invalid(op, Ref{}, "the queue has no name")
	case len(queue) > MaxQueueBytes:
		return Invalid(op, Ref{Queue: Clip(queue)}, "the queue's name has %d bytes; at most %d are allowed", len(queue), MaxQueueBytes)
	case queue[0] == '-':
		return Invalid(op, Ref{Queue: strings.ToValidUTF8(queue, "?")}, "a queue's name must not begin with -")
	}
	for i := range len(queue) {
		if !queueChar[queue[i]] {
			return Invalid(op, Ref{Queue: Clip(strings.ToValidUTF8(queue, "?"))}, "byte %d of the queue's name is not one of A-Za-z0-9-+/;.$_()", i+1)
		}
	}
	return nil
}

// CheckKey returns an ErrInvalid unless a message may have that key: 1 to 512 bytes of UTF-8,
// and neither . nor .., which cannot be names in a URL.
func CheckKey(op, queue, key string) error {
	ref := Ref{Queue: queue, Key: key}
	switch {
	case key == "":
		return Invalid(op, ref, "the key is empty")
	case len(key) > MaxKeyBytes:
		return Invalid(op, ref, "the key has %d bytes; at most %d are allowed", len(key), MaxKeyBytes)
	case key == "." || key == "..":
		return Invalid(op, ref, "a key must not be . or .., which are no names in a URL")
	case !utf8.ValidString(key):
		return Invalid(op, Ref{Queue: queue}, "the key is not valid UTF-8")
	}
	return nil
}

// Validate returns an ErrInvalid unless a ref names a queue and, by a key or an id, a
// message, and By is a name that a worker may have.
func (r *Ref) Validate(op string) error {
	if r.Queue == "" {
		return Invalid(op, Ref{Key: r.Key}, "the reference names no queue: write ByKey(key).Of(queue)")
	}
	if err := CheckQueue(op, r.Queue); err != nil {
		return err
	}
	if err := checkName(op, Ref{Queue: r.Queue}, "the name of who cancels", r.By); err != nil {
		return err
	}
	switch {
	case r.IfState != Gone && !r.IfState.Live() && r.IfState != Dead:
		return Invalid(op, *r, "if_state is %s; a message is scheduled, ready, leased or dead", r.IfState)
	case r.ID == 0 && r.Key != "":
		return CheckKey(op, r.Queue, r.Key)
	case r.Key != "":
		return Invalid(op, Ref{Queue: r.Queue, Key: r.Key}, "give a key or an id, not both")
	}
	return r.Check(op)
}

// Validate returns an ErrInvalid unless w is a time at which a message may be due.
func (w When) Validate(op string, ref Ref) error {
	// Engines round a due time up to milliseconds, so its year is that of the rounded time.
	switch year := w.At.Add(time.Millisecond - 1).UTC().Year(); {
	case w.In < 0:
		return Invalid(op, ref, "the delay %s is negative", w.In)
	case w.In != 0 && !w.At.IsZero():
		return Invalid(op, ref, "both a delay and a due time are given; give one")
	case year > MaxYear:
		return Invalid(op, ref, "the due time lies beyond the year %d", MaxYear)
	case year < 1:
		return Invalid(op, ref, "the due time lies before the year 1")
	}
	return nil
}

// CheckTTR returns an ErrInvalid unless a lease may last for ttr; 0 stands for the
// message's own TTR and is valid.
func CheckTTR(op, queue string, ttr time.Duration) error {
	if ttr != 0 && (ttr < MinTTR || ttr > MaxTTR) {
		return Invalid(op, Ref{Queue: queue}, "the time to run %s is outside %s to %s", ttr, MinTTR, MaxTTR)
	}
	return nil
}

// CheckWorker returns an ErrInvalid unless a worker may have that name: at most 100 bytes of
// UTF-8 without control characters. "" means that no name is given, and is valid.
func CheckWorker(op, queue, name string) error {
	return checkName(op, Ref{Queue: queue}, "the worker's name", name)
}

func checkName(op string, ref Ref, what, name string) error {
	switch {
	case len(name) > MaxWorkerBytes:
		return Invalid(op, ref, "%s has %d bytes; at most %d are allowed", what, len(name), MaxWorkerBytes)
	case !utf8.ValidString(name):
		return Invalid(op, ref, "%s is not valid UTF-8", what)
	case strings.ContainsFunc(name, unicode.IsControl):
		return Invalid(op, ref, "%s %q has a control character", what, name)
	}
	return nil
}

// CheckBackoff returns an ErrInvalid unless the delays are a valid backoff.
func CheckBackoff(op string, ref Ref, delays []time.Duration) error {
	if len(delays) > MaxBackoffs {
		return Invalid(op, ref, "the backoff has %d entries; at most %d are allowed", len(delays), MaxBackoffs)
	}
	for _, d := range delays {
		if d < 0 {
			return Invalid(op, ref, "a backoff of %s is negative", d)
		}
	}
	return nil
}

// Validate returns an ErrInvalid, or an ErrTooLarge for the body, unless the message may be
// pushed.
func (m *Message) Validate(op string, maxBody int) error {
	if err := CheckQueue(op, m.Queue); err != nil {
		return err
	}
	if m.Key != "" || m.OnConflict == Rearm {
		if err := CheckKey(op, m.Queue, m.Key); err != nil {
			return err
		}
	}
	ref := Ref{Queue: m.Queue, Key: m.Key}
	if err := m.Due.Validate(op, ref); err != nil {
		return err
	}
	if len(m.Body) > maxBody {
		return refusal(op, ref, ErrTooLarge, fmt.Sprintf("the body has %d bytes; at most %d are allowed: push a reference to the data, or allow more (MaxBody of the client or server, --max-body of tarry serve)", len(m.Body), maxBody))
	}
	if m.OnConflict > Rearm {
		return Invalid(op, ref, "unknown conflict policy %d", m.OnConflict)
	}
	if m.Token != "" {
		if err := m.checkToken(op, ref); err != nil {
			return err
		}
	}
	if err := m.Content.validate(op, ref); err != nil {
		return err
	}
	return m.Terms.validate(op, ref)
}

func (m *Message) checkToken(op string, ref Ref) error {
	switch {
	case m.Key == "":
		return Invalid(op, ref, "a push with a token needs a key")
	case m.OnConflict != Replace:
		return Invalid(op, ref, "a push with a token needs on_conflict replace")
	case len(m.Token) > MaxTokenBytes:
		return Invalid(op, ref, "the token has %d bytes; at most %d are allowed", len(m.Token), MaxTokenBytes)
	}
	return nil
}

// CheckAtomic returns an ErrTooLarge when an atomic push is too large: other calls wait for
// it. Engines call it after checking each message.
func CheckAtomic(msgs []Message) error {
	const op = "push"
	if n := len(msgs); n > MaxAtomic {
		return refusal(op, Ref{}, ErrTooLarge, fmt.Sprintf("%d messages in one atomic push; at most %d are allowed: push them in several, or not as one", n, MaxAtomic))
	}
	bytes := 0
	for i := range msgs {
		m := &msgs[i]
		bytes += len(m.Key) + len(m.Body) + m.Content.headBytes()
	}
	if bytes > MaxAtomicBytes {
		return refusal(op, Ref{}, ErrTooLarge, fmt.Sprintf("the messages of one atomic push have %d bytes together; at most %d are allowed: push them in several, or not as one", bytes, MaxAtomicBytes))
	}
	return nil
}

// headBytes returns the size of the headers and the content type.
func (c *Content) headBytes() int {
	bytes := len(c.ContentType)
	for _, h := range c.Headers {
		bytes += len(h.Name) + len(h.Value)
	}
	return bytes
}

func (c *Content) validate(op string, ref Ref) error {
	if len(c.Headers) > MaxHeaders {
		return Invalid(op, ref, "%d headers; at most %d are allowed", len(c.Headers), MaxHeaders)
	}
	for _, h := range c.Headers {
		if h.Name == "" {
			return Invalid(op, ref, "a header has no name")
		}
		if !utf8.ValidString(h.Name) || !utf8.ValidString(h.Value) {
			return Invalid(op, ref, "a header is not valid UTF-8")
		}
	}
	if bytes := c.headBytes(); bytes > MaxHeaderBytes {
		return Invalid(op, ref, "the headers have %d bytes; at most %d are allowed", bytes, MaxHeaderBytes)
	}
	return nil
}

// Validate returns an ErrInvalid unless a want is valid for one call.
func (w *Want) Validate() error {
	const op = "lease"
	if w.Max < 1 || w.Max > MaxLease {
		return Invalid(op, Ref{}, "max is %d; allowed are 1 to %d", w.Max, MaxLease)
	}
	if err := CheckQueue(op, w.Queue); err != nil {
		return err
	}
	if err := CheckWorker(op, w.Queue, w.Worker); err != nil {
		return err
	}
	for _, t := range w.Takers {
		if t.Max < 1 {
			return Invalid(op, Ref{Queue: w.Queue}, "a worker takes %d leases; at least 1 is allowed", t.Max)
		}
		if err := CheckWorker(op, w.Queue, t.Worker); err != nil {
			return err
		}
	}
	return CheckTTR(op, w.Queue, w.TTR)
}

// Validate returns an ErrInvalid unless a settlement names a lease and a valid action,
// within the limits of leases and due times.
func (s *Settlement) Validate() error {
	const op = "settle"
	if s.Token == "" {
		return Invalid(op, Ref{}, "no lease is given")
	}
	if err := s.Check(); err != nil {
		return err
	}
	if s.Do == Extend {
		if err := CheckTTR(op, "", s.TTR); err != nil {
			return err
		}
	}
	if s.When != nil {
		return s.When.Validate(op, Ref{})
	}
	return nil
}

// CheckBatch returns an ErrTooLarge unless one call may have n items.
func CheckBatch(op string, n int) error {
	if n > MaxBatch {
		return refusal(op, Ref{}, ErrTooLarge, fmt.Sprintf("%d items in one call; at most %d are allowed", n, MaxBatch))
	}
	return nil
}

// CheckRedrive returns an ErrInvalid or ErrTooLarge unless one call may redrive these ids,
// or up to limit messages; 0: all.
func CheckRedrive(queue string, ids []ID, limit int) error {
	const op = "redrive"
	if limit < 0 {
		return Invalid(op, Ref{Queue: queue}, "the limit %d is negative", limit)
	}
	return CheckBatch(op, len(ids))
}
