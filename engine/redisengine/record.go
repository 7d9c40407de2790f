package redisengine

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// A message is stored as a record, written by a push, and a past, which scripts write at
// later events. A settlement may change the record's priority. Scripts read the head of the
// record and the past by HEAD and PAST of lua/shard.lua; only this file reads the rest. Numbers
// are big-endian. docs/formats/redis.md has both byte by byte.
//
//   record: flags u8, created u56 (µs), key, policy, then the content unless it is large
//   past:   mark, flags u8, attempt u32, max attempts u32, due f64, expires f64,
//           deadline f64, start f64 of the lease (of a dead message start, died), secret of
//           the lease (u8 and bytes), key, failures, then the worker of the lease
//
// Keys and failures are a u16 length and the bytes; policies, contents and each failure are as
// in package codec.

const (
	flagRare       = 1 // unusual priority, or an expiry: see lua/shard.lua
	flagLarge      = 2 // the content is stored in BODY
	flagRemembered = 4 // its key is remembered

	createdBytes = 7
	// largeContent is the size from which contents are stored apart from records, so that
	// scripts that read many messages do not copy their bodies.
	largeContent = 1 << 10
)

// encode returns the record of a message created at an instant in microseconds, and its
// content if that is large.
func encode(m *engine.Message, p *engine.Policy, created int64) (record, large []byte) {
	size := codec.ContentSize(&m.Content)
	var flags byte
	if p.Priority != codec.UsualPriority || p.ExpireAfter > 0 {
		flags |= flagRare
	}
	if m.Key != "" && p.Remember > 0 {
		flags |= flagRemembered
	}
	if size >= largeContent {
		flags |= flagLarge
		large = codec.AppendContent(make([]byte, 0, size), &m.Content)
		size = 0
	}
	b := make([]byte, 0, 48+len(m.Key)+8*len(p.Backoff)+size)
	b = binary.BigEndian.AppendUint64(b, uint64(created))
	b[0] = flags // replaces the top byte of the instant, which is 0
	b = codec.AppendPolicy(appendShort(b, m.Key), p)
	if large != nil {
		return b, large
	}
	return codec.AppendContent(b, &m.Content), nil
}

// ceil divides a span by a unit, rounding up.
func ceil(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

func appendFloat(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(f))
}

func appendShort(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

var errRecord = errors.New("a message in Redis is damaged, or not from tarry")

// reader also decodes what the scripts have written.
type reader struct{ codec.Reader }

func (r *reader) instant() time.Time { return instant(math.Float64frombits(r.Uint(8))) }
func (r *reader) short() string      { return string(r.Take(r.Uint(2))) }

// instant converts Unix milliseconds to the contract's time: UTC, zero for never.
func instant(ms float64) time.Time {
	if ms != ms || math.Abs(ms) > 1<<53 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// past is the history of a message.
type past struct {
	mark                                  byte
	attempt                               uint32
	due, expires, deadline, started, died time.Time
	secret                                codec.Nonce
	failures                              []byte // encoded
	worker                                string // while the secret is kept
}

func decodePast(b []byte) (p past, err error) {
	r := reader{codec.Reader{B: b}}
	p.mark = r.Byte()
	r.Byte()
	p.attempt = uint32(r.Uint(4))
	r.Uint(4)
	p.due, p.expires = r.instant(), r.instant()
	if p.mark == 'D' {
		p.started, p.died = r.instant(), r.instant()
	} else {
		p.deadline, p.started = r.instant(), r.instant()
	}
	secret := r.Take(r.Uint(1))
	r.Take(r.Uint(2)) // the key
	p.failures, p.worker = r.Take(r.Uint(2)), string(r.B)
	if r.Err != nil || len(secret) != 0 && len(secret) != 2*len(p.secret) || !strings.ContainsRune("WLD", rune(p.mark)) {
		return past{}, errRecord
	}
	if p.worker != "" && len(secret) == 0 {
		return past{}, errRecord
	}
	if _, err := hex.Decode(p.secret[:], secret); err != nil {
		return past{}, errRecord
	}
	return p, nil
}

// decodeRecord decodes a record into an Info. A large content is passed separately.
func decodeRecord(record, large []byte, i *engine.Info) error {
	r := reader{codec.Reader{B: record}}
	flags := r.Byte()
	i.Created = time.UnixMilli(int64(r.Uint(createdBytes)) / 1000).UTC()
	i.Key = r.short()
	i.Policy = r.Policy()
	switch {
	case flags&flagLarge == 0:
		i.Content = r.Content()
	case r.End() == nil && len(large) > 0:
		r.B = large
		i.Content = r.Content()
	}
	if r.End() != nil {
		return errRecord
	}
	return nil
}

// message decodes a message from a script's answer, as of now.
func message(queue string, id engine.ID, pastText, record, large []byte, now int64) (engine.Info, past, error) {
	p, err := decodePast(pastText)
	if err != nil {
		return engine.Info{}, p, err
	}
	i := engine.Info{ID: id, Queue: queue, Due: p.due, Expires: p.expires, Attempt: p.attempt}
	failures := codec.Reader{B: p.failures}
	if i.Failures = failures.Failures(); failures.Err != nil {
		return engine.Info{}, p, errRecord
	}
	if n := len(i.Failures); n > 0 {
		i.LastError = i.Failures[n-1].Reason
	}
	if err := decodeRecord(record, large, &i); err != nil {
		return engine.Info{}, p, err
	}
	switch i.State = state(p.mark, p.due.UnixMilli(), now); i.State {
	case engine.Leased:
		i.Deadline, i.Worker, i.Started = p.deadline, p.worker, p.started
	case engine.Dead:
		i.Died = p.died
	}
	return i, p, nil
}

// state returns the state of a mark at now. Times are in milliseconds.
func state(mark byte, due, now int64) engine.State {
	switch {
	case mark == 'L':
		return engine.Leased
	case mark == 'D':
		return engine.Dead
	case due > now:
		return engine.Scheduled
	}
	return engine.Ready
}

// stateArg is a state's number, as scripts read it.
func stateArg(s engine.State) string { return strconv.Itoa(int(s)) }

// when is a due time, as scripts read it.
func when(w engine.When) string {
	if w.At.IsZero() {
		return span(w.In)
	}
	ms := w.At.UnixMilli()
	text := appendInt(nil, ms)
	if w.At.Nanosecond()%int(time.Millisecond) != 0 {
		text = append(text, '~')
	}
	return string(text)
}

// appendDue appends a due time, as lua/push.lua reads it.
func appendDue(b []byte, w engine.When) []byte {
	if w.At.IsZero() {
		return appendFloat(append(b, 0), float64(ceil(max(0, w.In), time.Microsecond)))
	}
	kind := byte(1)
	if w.At.Nanosecond()%int(time.Millisecond) != 0 {
		kind = 2
	}
	return appendFloat(append(b, kind), float64(w.At.UnixMilli()))
}

// ttrArg is the time to run of a lease, as scripts read it: "" for the message's own.
func ttrArg(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return strconv.FormatInt(ceil(d, time.Microsecond), 10)
}

// span is a duration from now, as scripts read it.
func span(d time.Duration) string {
	return string(appendInt([]byte{'+'}, ceil(max(0, d), time.Microsecond)))
}
