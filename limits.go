package tarry

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tarryhq/tarry/engine"
)

// The limits on what a message may be, checked before any engine sees it.
const (
	MaxQueueBytes  = engine.MaxQueueBytes
	MaxKeyBytes    = engine.MaxKeyBytes
	MaxHeaders     = engine.MaxHeaders
	MaxHeaderBytes = engine.MaxHeaderBytes
	MaxBackoffs    = engine.MaxBackoffs
	MaxMaxAttempts = engine.MaxMaxAttempts
	MinTTR         = engine.MinTTR
	MaxTTR         = engine.MaxTTR
	MaxLease       = engine.MaxLease
	MaxBatch       = engine.MaxBatch
)

// The defaults of a pushed message.
const (
	DefaultPriority    = 1024
	DefaultMaxAttempts = 20
	DefaultTTR         = time.Minute
	DefaultMaxBody     = 1 << 20
)

// maxYear is the last year a due time may lie in: RFC 3339 ends there.
const maxYear = 9999

func invalid(op, queue, key, format string, args ...any) error {
	return &Error{Op: op, Queue: queue, Key: engine.Clip(key), Err: ErrInvalid, Hint: fmt.Sprintf(format, args...)}
}

const queueChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"

var queueChar = func() (ok [256]bool) {
	for _, c := range []byte(queueChars) {
		ok[c] = true
	}
	return ok
}()

func checkQueue(op, queue string) error {
	switch {
	case queue == "":
		return invalid(op, "", "", "the queue has no name")
	case len(queue) > MaxQueueBytes:
		return invalid(op, engine.Clip(queue), "", "the queue's name has %d bytes; at most %d are allowed", len(queue), MaxQueueBytes)
	case queue[0] == '-':
		return invalid(op, strings.ToValidUTF8(queue, "?"), "", "a queue's name must not begin with -")
	}
	for i := range len(queue) {
		if !queueChar[queue[i]] {
			return invalid(op, engine.Clip(strings.ToValidUTF8(queue, "?")), "", "byte %d of the queue's name is not one of A-Za-z0-9-+/;.$_()", i+1)
		}
	}
	return nil
}

func checkKey(op, queue, key string) error {
	switch {
	case key == "":
		return invalid(op, queue, "", "the key is empty")
	case len(key) > MaxKeyBytes:
		return invalid(op, queue, key, "the key has %d bytes; at most %d are allowed", len(key), MaxKeyBytes)
	case key == "." || key == "..":
		return invalid(op, queue, key, "a key must not be . or .., which are no names in a URL")
	case !utf8.ValidString(key):
		return invalid(op, queue, "", "the key is not valid UTF-8")
	}
	return nil
}

func checkWhen(op, queue, key string, w engine.When) error {
	switch {
	case w.In < 0:
		return invalid(op, queue, key, "the delay %s is negative", w.In)
	case w.In != 0 && !w.At.IsZero():
		return invalid(op, queue, key, "both a delay and a due time are given; give one")
	case w.At.UTC().Year() > maxYear || time.Now().Add(w.In).Year() > maxYear:
		return invalid(op, queue, key, "the due time lies beyond the year %d", maxYear)
	case w.At.UTC().Year() < 1:
		return invalid(op, queue, key, "the due time lies before the year 1")
	}
	return nil
}

func checkTTR(op, queue string, ttr time.Duration) error {
	if ttr != 0 && (ttr < MinTTR || ttr > MaxTTR) {
		return invalid(op, queue, "", "the time to run %s is outside %s to %s", ttr, MinTTR, MaxTTR)
	}
	return nil
}

// check refuses what no engine should see.
func (c *Client) check(op string, m *engine.Message) error {
	if err := checkQueue(op, m.Queue); err != nil {
		return err
	}
	if m.Key != "" || m.OnConflict == KeepBody {
		if err := checkKey(op, m.Queue, m.Key); err != nil {
			return err
		}
	}
	if err := checkWhen(op, m.Queue, m.Key, m.Due); err != nil {
		return err
	}
	if len(m.Body) > c.maxBody {
		return &Error{Op: op, Queue: m.Queue, Key: m.Key, Err: ErrTooLarge,
			Hint: fmt.Sprintf("the body has %d bytes; at most %d are allowed", len(m.Body), c.maxBody)}
	}
	if m.OnConflict > KeepBody {
		return invalid(op, m.Queue, m.Key, "unknown conflict policy %d", m.OnConflict)
	}
	return checkPolicy(op, m)
}

func checkPolicy(op string, m *engine.Message) error {
	bytes := len(m.ContentType)
	for _, h := range m.Headers {
		if h.Name == "" {
			return invalid(op, m.Queue, m.Key, "a header has no name")
		}
		if !utf8.ValidString(h.Name) || !utf8.ValidString(h.Value) {
			return invalid(op, m.Queue, m.Key, "a header is not valid UTF-8")
		}
		bytes += len(h.Name) + len(h.Value)
	}
	switch {
	case len(m.Headers) > MaxHeaders:
		return invalid(op, m.Queue, m.Key, "%d headers; at most %d are allowed", len(m.Headers), MaxHeaders)
	case bytes > MaxHeaderBytes:
		return invalid(op, m.Queue, m.Key, "the headers have %d bytes; at most %d are allowed", bytes, MaxHeaderBytes)
	case m.MaxAttempts < 1 || m.MaxAttempts > MaxMaxAttempts:
		return invalid(op, m.Queue, m.Key, "max_attempts is %d; allowed are 1 to %d", m.MaxAttempts, MaxMaxAttempts)
	case m.TTR < MinTTR || m.TTR > MaxTTR:
		return checkTTR(op, m.Queue, max(m.TTR, 1))
	case m.ExpireAfter < 0:
		return invalid(op, m.Queue, m.Key, "expire_after %s is negative", m.ExpireAfter)
	case len(m.Backoff) > MaxBackoffs:
		return invalid(op, m.Queue, m.Key, "the backoff has %d entries; at most %d are allowed", len(m.Backoff), MaxBackoffs)
	}
	for _, d := range m.Backoff {
		if d < 0 {
			return invalid(op, m.Queue, m.Key, "a backoff of %s is negative", d)
		}
	}
	return nil
}
