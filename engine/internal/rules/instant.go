// Package rules has the rules of a message that the engines written in Go share: pure functions
// of the message, the call and the present.
package rules

import (
	"math"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Engines keep instants as Unix milliseconds.

// Never is the instant that never comes.
const Never = math.MaxInt64

// Instant converts an instant to the contract's form: UTC, and zero for Never.
func Instant(ms int64) time.Time {
	if ms == Never {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Millis returns d in milliseconds, rounded up.
func Millis(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// Expiry returns when a message with this due time expires under policy p.
func Expiry(due int64, p *engine.Policy) int64 {
	if p.ExpireAfter <= 0 {
		return Never
	}
	return due + Millis(p.ExpireAfter)
}

// MinuteMillis is the length of a minute.
const MinuteMillis = int64(time.Minute / time.Millisecond)

// MinuteOf returns the minute of an instant, since 1970.
func MinuteOf(ms int64) int64 {
	m := ms / MinuteMillis
	if ms < 0 && ms%MinuteMillis != 0 {
		m--
	}
	return m
}
