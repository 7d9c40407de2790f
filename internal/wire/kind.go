package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// The kinds of values that many objects have. Those named after a word are its values.
var (
	asText        = scalar(isText, (*Reader).text, AppendString)
	asQueue       = asText.described(isQueue)
	asContentType = scalar(isText, (*Reader).contentType, AppendString)
	asFlag        = scalar(isFlag, (*Reader).flag, strconv.AppendBool)
	asID          = scalar(isID, (*Reader).id, appendID)
	asHeaders     = kind[[]engine.Header]{
		is:     isHeaders,
		read:   func(r *Reader, name string, all *[]engine.Header) { *all = r.headers(name) },
		append: func(b []byte, all *[]engine.Header) []byte { return appendHeaders(b, *all, true) },
		zero:   func(all *[]engine.Header) bool { return len(*all) == 0 },
	}

	asDuration = scalar(isDuration, (*Reader).duration, AppendDuration)
	asTTR      = scalar(isDuration, (*Reader).ttr, AppendDuration)
	asBackoff  = list(asDuration, engine.MaxBackoffs)
	asInstant  = instants(isInstant, AppendTime) // null: none, or not known
	asTime     = instants(isTime, AppendTime)
	asExact    = instants(isTime, appendExact)

	asState    = named(engine.Gone, engine.Finished).described(isState)
	asEnding   = named(engine.Acked, engine.Expired)
	asOutcome  = named(engine.Created, engine.Replaced)
	asConflict = named(engine.Reject, engine.Rearm)
	asAction   = named(engine.Ack, engine.Extend)

	// asJSON is the text of any JSON value.
	asJSON = kind[[]byte]{read: func(r *Reader, _ string, body *[]byte) {
		if v, ok := r.value(); ok && r.lenient {
			*body = bytes.Clone(v)
		} else {
			*body = v
		}
	}}
	asBase64 = kind[[]byte]{
		is:   isBase64,
		read: func(r *Reader, name string, body *[]byte) { *body = r.base64(name) },
		append: func(b []byte, body *[]byte) []byte {
			return append(base64.StdEncoding.AppendEncode(append(b, '"'), *body), '"')
		},
		zero: func(body *[]byte) bool { return len(*body) == 0 },
	}
)

// Each term of a message has a kind, since settings of queues have terms too.
var (
	asPriority    = pointer(whole[uint32](0, math.MaxUint32))
	asIsolate     = pointer(asFlag)
	asMaxAttempts = whole[uint32](0, engine.MaxMaxAttempts).described(wholeSchema(1, engine.MaxMaxAttempts)).
			checked(func(r *Reader, name string, n uint32) {
			if n == 0 {
				r.Wrong("%s: must be at least 1; leave it out for the default", name)
			}
		})
	asSpanOrNever = scalar(isDuration, func(r *Reader, name string) time.Duration { return cmp.Or(r.duration(name), engine.Never) }, appendOrNever)
	asRemember    = scalar(isDuration, func(r *Reader, name string) time.Duration {
		return cmp.Or(r.within(name, 0, engine.MaxRemember), engine.Never)
	}, appendOrNever)
)

func appendOrNever(b []byte, d time.Duration) []byte { return AppendDuration(b, max(0, d)) }

// number is a type of whole numbers.
type number interface{ ~int | ~int64 | ~uint32 }

func appendNumber[N number](b []byte, n N) []byte { return strconv.AppendInt(b, int64(n), 10) }

// whole returns the kind of numbers from least to most.
func whole[N number](least, most uint64) kind[N] {
	read := func(r *Reader, name string) N { return N(r.wholeFrom(name, least, most)) }
	return scalar(wholeSchema(int64(least), int64(most)), read, appendNumber[N])
}

// count returns the kind of counts.
func count[N number]() kind[N] {
	return scalar(isCount, func(r *Reader, name string) N { return N(r.count(name)) }, appendNumber[N])
}

// count32 is the kind of counts of 32 bits.
var count32 = whole[uint32](0, math.MaxUint32).described(isCount)

// instants returns the kind of times that are written like this.
func instants(is Schema, write func(b []byte, t time.Time) []byte) kind[time.Time] {
	k := scalar(is, (*Reader).time, write)
	k.zero = (*time.Time).IsZero
	return k
}

// appendExact appends a time with all its digits: rounding is up to the engine.
func appendExact(b []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

// word is a type with named values.
type word interface {
	~uint8
	String() string
}

// words returns the names of all values from first to last.
func words[V word](first, last V) (all []string) {
	for v := first; v <= last; v++ {
		all = append(all, v.String())
	}
	return all
}

// named returns the kind of values from first to last that have names.
func named[V word](first, last V) kind[V] {
	names := words(first, last)
	read := func(r *Reader, name string) V {
		s, ok := r.bytes(name)
		for i, n := range names {
			if n == string(s) {
				return first + V(i)
			}
		}
		if ok {
			n := len(names) - 1
			r.Wrong("%s: must be %s or %s, not %q", name, strings.Join(names[:n], ", "), names[n], engine.Clip(string(s)))
		}
		return 0
	}
	return scalar(wordsSchema(names...), read, appendName[V])
}

// appendName appends one of our own words, which needs no escapes.
func appendName[V word](b []byte, v V) []byte {
	return append(append(append(b, '"'), v.String()...), '"')
}

// items returns the kind of a request's items, of which each may fail alone. what names one in
// errors.
func items[T any](o *Object[T], what string) kind[Items[T]] {
	return kind[Items[T]]{
		is: arraySchema(o.Ref(), engine.MaxBatch),
		read: func(r *Reader, name string, all *Items[T]) {
			r.items(name, func(n int) {
				all.All = append(all.All, *new(T))
				o.read(r, what, &all.All[n])
				if r.bad != nil {
					all.Fail(n, r.bad)
				}
			})
		},
		append: func(b []byte, all *Items[T]) []byte { return appendAll(b, all.All, o.Append) },
	}
}

// ignored returns the kind of values that nobody reads.
func ignored[V any](is Schema, write func(b []byte, v V) []byte) kind[V] {
	return kind[V]{
		is:     is,
		read:   func(r *Reader, _ string, _ *V) { r.skip() },
		append: func(b []byte, v *V) []byte { return write(b, *v) },
	}
}
