package redisengine

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// A message is kept as a record, which a push writes, and a past, which scripts write
// once something has happened to it. Scripts read the head of the record and the past
// by the formats HEAD and PAST of lua/shard.lua; the rest of the record is for this
// file alone. Numbers are big-endian. docs/formats/redis.md has both byte by byte.
//
//	record: created f64 (µs), flags u8, priority u32,
//	        max attempts u32, ttr f64 (µs), expire after f64 (ms), size of the body u32, key,
//	        then ttr u64, expire after u64, backoff (u16 and u64 each), all in ns,
//	        then the content unless it is large
//	past:   mark, flags u8, attempt u32, max attempts u32, due f64, expires f64,
//	        deadline f64, died f64, nonce (u8 and bytes), key, reason
//	content: content type, headers (u16, then name and value each), body
//
// Keys, types, headers and reasons are a u16 and so many bytes; header values and the
// body are a u32 and so many bytes.

const (
	flagRare  = 1 // another priority than the usual, or an expiry: see lua/shard.lua
	flagLarge = 2 // the content is in a hash of its own
	flagsAt   = 8 // where flags are in a record

	usualPriority = 1024
	// largeContent is the size from which contents are kept apart from records, so
	// that scripts which look at many messages do not move their bodies about.
	largeContent = 1 << 10
)

// encode returns the record of a message created at an instant in microseconds, and
// its content if that is large.
func encode(m *engine.Message, created int64) (record, large []byte) {
	size := contentSize(&m.Content)
	var flags byte
	if m.Priority != usualPriority || m.ExpireAfter > 0 {
		flags |= flagRare
	}
	if size >= largeContent {
		flags |= flagLarge
	}
	room := 64 + len(m.Key) + 8*len(m.Backoff)
	if flags&flagLarge == 0 {
		room += size
	}
	b := make([]byte, 0, room)
	b = appendFloat(b, float64(created))
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, m.Priority)
	b = binary.BigEndian.AppendUint32(b, m.MaxAttempts)
	b = appendFloat(b, float64(ceil(m.TTR, time.Microsecond)))
	b = appendFloat(b, float64(ceil(max(0, m.ExpireAfter), time.Millisecond)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.Body)))
	b = appendShort(b, m.Key)
	b = binary.BigEndian.AppendUint64(b, uint64(m.TTR))
	b = binary.BigEndian.AppendUint64(b, uint64(m.ExpireAfter))
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Backoff)))
	for _, d := range m.Backoff {
		b = binary.BigEndian.AppendUint64(b, uint64(d))
	}
	if flags&flagLarge == 0 {
		return appendContent(b, &m.Content), nil
	}
	return b, appendContent(make([]byte, 0, size), &m.Content)
}

// ceil divides a span by a unit, rounding up.
func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

func contentSize(c *engine.Content) int {
	n := 2 + len(c.ContentType) + 2 + 4 + len(c.Body)
	for _, h := range c.Headers {
		n += 2 + len(h.Name) + 4 + len(h.Value)
	}
	return n
}

func appendContent(b []byte, c *engine.Content) []byte {
	b = appendShort(b, c.ContentType)
	b = binary.BigEndian.AppendUint16(b, uint16(len(c.Headers)))
	for _, h := range c.Headers {
		b = appendShort(b, h.Name)
		b = binary.BigEndian.AppendUint32(b, uint32(len(h.Value)))
		b = append(b, h.Value...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(c.Body)))
	return append(b, c.Body...)
}

func appendFloat(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(f))
}

func appendShort(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

var errRecord = errors.New("a message in Redis is damaged, or not one of tarry's")

// reader takes apart what encode and the scripts have put together. After bad is set
// it returns zeroes.
type reader struct {
	s   string
	bad bool
}

func (r *reader) take(n int) string {
	if n < 0 || n > len(r.s) {
		r.bad, r.s = true, ""
		return ""
	}
	s := r.s[:n]
	r.s = r.s[n:]
	return s
}

func (r *reader) uint(n int) (u uint64) {
	for _, c := range []byte(r.take(n)) {
		u = u<<8 | uint64(c)
	}
	return u
}

func (r *reader) float() float64          { return math.Float64frombits(r.uint(8)) }
func (r *reader) instant() time.Time      { return instant(r.float()) }
func (r *reader) duration() time.Duration { return time.Duration(r.uint(8)) }
func (r *reader) string(lenBytes int) string {
	return r.take(int(r.uint(lenBytes)))
}

// count reads how many things follow, each of so many bytes or more.
func (r *reader) count(bytes int) int {
	n := int(r.uint(2))
	if n > len(r.s)/bytes {
		r.bad = true
		return 0
	}
	return n
}

// instant is Unix milliseconds as the contract has it: UTC, zero for never.
func instant(ms float64) time.Time {
	if ms != ms || math.Abs(ms) > 1<<53 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// past is what has happened to a message.
type past struct {
	mark                         byte
	attempt                      uint32
	due, expires, deadline, died time.Time
	nonce                        token.Nonce
	reason                       string
}

func decodePast(s string) (p past, err error) {
	r := reader{s: s}
	mark := r.take(1)
	r.uint(1)
	p.attempt = uint32(r.uint(4))
	r.uint(4)
	p.due, p.expires, p.deadline, p.died = r.instant(), r.instant(), r.instant(), r.instant()
	nonce, hexErr := hex.DecodeString(r.string(1))
	r.string(2)
	p.reason = r.string(2)
	if r.bad || len(r.s) > 0 || hexErr != nil || len(nonce) != 0 && len(nonce) != len(p.nonce) || !strings.Contains("WLD", mark) {
		return past{}, errRecord
	}
	p.mark = mark[0]
	copy(p.nonce[:], nonce)
	return p, nil
}

// decodeRecord reads a record, whose content may be apart, into what callers see of
// the message.
func decodeRecord(record, large string, i *engine.Info) error {
	r := reader{s: record}
	i.Created = instant(math.Floor(r.float() / 1000))
	flags := r.uint(1)
	i.Priority, i.MaxAttempts = uint32(r.uint(4)), uint32(r.uint(4))
	r.take(8 + 8 + 4)
	i.Key = r.string(2)
	i.TTR, i.ExpireAfter = r.duration(), r.duration()
	if n := r.count(8); n > 0 {
		i.Backoff = make([]time.Duration, n)
		for j := range i.Backoff {
			i.Backoff[j] = r.duration()
		}
	}
	if r.bad || flags&flagLarge != 0 && len(r.s) > 0 {
		return errRecord
	}
	if flags&flagLarge == 0 {
		return decodeContent(r.s, &i.Content)
	}
	if large != "" {
		return decodeContent(large, &i.Content)
	}
	return nil
}

func decodeContent(s string, c *engine.Content) error {
	r := reader{s: s}
	c.ContentType = r.string(2)
	if n := r.count(6); n > 0 {
		c.Headers = make([]engine.Header, n)
		for i := range c.Headers {
			c.Headers[i] = engine.Header{Name: r.string(2), Value: r.string(4)}
		}
	}
	if body := r.string(4); body != "" {
		c.Body = []byte(body)
	}
	if r.bad || len(r.s) > 0 {
		return errRecord
	}
	return nil
}

// message puts together what a script tells of a message: as it stood at now.
func message(queue string, id engine.ID, pastText, record, large string, now int64) (engine.Info, past, error) {
	p, err := decodePast(pastText)
	if err != nil {
		return engine.Info{}, p, err
	}
	i := engine.Info{ID: id, Queue: queue, Due: p.due, Expires: p.expires, Attempt: p.attempt, LastError: p.reason}
	if err := decodeRecord(record, large, &i); err != nil {
		return engine.Info{}, p, err
	}
	switch i.State = state(p.mark, p.due.UnixMilli(), now); i.State {
	case engine.Leased:
		i.Deadline = p.deadline
	case engine.Dead:
		i.Died = p.died
	}
	return i, p, nil
}

// state is what a mark means at now, all in milliseconds.
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

// when is a due time as scripts read it.
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

// appendDue appends a due time as the script for pushes reads it.
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

// span is a time from now as scripts read it.
func span(d time.Duration) string {
	return string(appendInt([]byte{'+'}, ceil(max(0, d), time.Microsecond)))
}
