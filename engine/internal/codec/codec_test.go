package codec

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var policies = []engine.Policy{
	{},
	{Priority: UsualPriority, MaxAttempts: UsualMaxAttempts, TTR: UsualTTR},
	{Priority: 0, MaxAttempts: UsualMaxAttempts, TTR: UsualTTR},
	{Priority: UsualPriority, MaxAttempts: math.MaxUint32, TTR: UsualTTR},
	{Priority: UsualPriority, MaxAttempts: UsualMaxAttempts, TTR: 24 * time.Hour},
	{Priority: UsualPriority, MaxAttempts: UsualMaxAttempts, TTR: UsualTTR, ExpireAfter: math.MaxInt64},
	{Priority: UsualPriority, MaxAttempts: UsualMaxAttempts, TTR: UsualTTR, Backoff: []time.Duration{0, time.Second, math.MaxInt64}},
	{Priority: UsualPriority, MaxAttempts: UsualMaxAttempts, TTR: UsualTTR, Remember: math.MaxInt64},
	{Priority: UsualPriority, MaxAttempts: UsualMaxAttempts, TTR: UsualTTR, Isolate: true},
	{Priority: math.MaxUint32, MaxAttempts: 1, TTR: 1, ExpireAfter: 1, Remember: 2, Backoff: []time.Duration{1}},
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, p := range policies {
		b := AppendPolicy([]byte("before"), &p)
		r := Reader{B: b[len("before"):]}
		if got := r.Policy(); r.End() != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("wrote %+v, read %+v, %v", p, got, r.Err)
		}
		for n := len("before"); n < len(b); n++ {
			if r := (Reader{B: b[len("before"):n]}); r.Policy().Priority == p.Priority && r.End() == nil {
				t.Errorf("%d of %d bytes were read as a policy", n, len(b))
			}
		}
	}
	if n := len(AppendPolicy(nil, &engine.Policy{Priority: UsualPriority, MaxAttempts: UsualMaxAttempts, TTR: UsualTTR, Isolate: true})); n != 1 {
		t.Errorf("the usual policy has %d bytes", n)
	}
	negative := engine.Policy{TTR: -1, ExpireAfter: -1, Remember: -1, Backoff: []time.Duration{-1}}
	r := Reader{B: AppendPolicy(nil, &negative)}
	if got := r.Policy(); r.End() != nil || got.TTR != 0 || got.ExpireAfter != 0 || got.Remember != 0 || got.Backoff[0] != 0 {
		t.Errorf("negative spans are read as %+v, %v", got, r.Err)
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	for _, c := range []engine.Content{
		{},
		{Body: []byte("{}"), ContentType: "application/json", Headers: []engine.Header{{Name: "a", Value: "b"}, {}}},
		{Body: bytes.Repeat([]byte{0}, 3000)},
	} {
		b := AppendContent(nil, &c)
		if len(b) > ContentSize(&c) {
			t.Errorf("%+v has %d bytes, not at most %d", c, len(b), ContentSize(&c))
		}
		r := Reader{B: b}
		if got := r.Content(); r.End() != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("wrote %+v, read %+v, %v", c, got, r.Err)
		}
		for n := range len(b) - len(c.Body) {
			r := Reader{B: b[:n]}
			if r.Content(); r.End() == nil {
				t.Errorf("%d of %d bytes were read as a content", n, len(b))
			}
		}
		if len(c.Body) > 0 {
			r, last := Reader{B: b}, len(c.Body)-1
			got := r.Content()
			b[len(b)-1]++
			if got.Body[last] != c.Body[last] {
				t.Error("what is read changes with what it was read from")
			}
		}
	}
}

// FuzzCodec: what is not well formed is refused, what is comes out again as it went in,
// and nothing makes more of itself than it is.
func FuzzCodec(f *testing.F) {
	for _, p := range policies {
		c := engine.Content{Body: []byte("{}"), ContentType: "text/plain", Headers: []engine.Header{{Name: "a", Value: "b"}}}
		f.Add(AppendContent(AppendPolicy(nil, &p), &c))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := Reader{B: b}
		p := r.Policy()
		c := r.Content()
		if cap(p.Backoff) > len(b) || cap(c.Headers) > len(b) || len(c.Body) > len(b) {
			t.Fatalf("%d bytes became %d delays, %d headers and %d bytes", len(b), cap(p.Backoff), cap(c.Headers), len(c.Body))
		}
		if r.End() != nil {
			return
		}
		r = Reader{B: AppendContent(AppendPolicy(nil, &p), &c)}
		if q, d := r.Policy(), r.Content(); r.End() != nil || !reflect.DeepEqual(p, q) || !reflect.DeepEqual(c, d) {
			t.Errorf("%+v, %+v came back as %+v, %+v, %v", p, c, q, d, r.Err)
		}
	})
}

// What is read of failures is what was written, and nothing of a part of one.
func TestFailures(t *testing.T) {
	t.Parallel()
	var all []byte
	var want []engine.Failure
	for n := range 2 * engine.MaxFailures {
		f := engine.Failure{At: time.UnixMilli(int64(n-3) * 1e11).UTC(), Attempt: uint32(n), Worker: strings.Repeat("w", n), Reason: strings.Repeat("é", 50*n)}
		before := bytes.Clone(all)
		ends := map[int]bool{0: true}
		with := AddFailure(all, &f)
		want = engine.AddFailure(slices.Clone(want), f)
		r := Reader{B: with}
		if got := r.Failures(); r.End() != nil || !reflect.DeepEqual(got, want) || string(LastReason(with)) != f.Reason || !bytes.Equal(all, before) {
			t.Fatalf("wrote %+v, read %+v, %v", want, got, r.Err)
		}
		for i, at := 0, 0; i < len(want); i++ {
			at += len(AppendFailure(nil, &want[i]))
			ends[at] = true
		}
		for n := range with {
			if r := (Reader{B: with[:n]}); r.Failures() != nil && r.End() == nil && !ends[n] {
				t.Fatalf("%d of %d bytes were read as failures", n, len(with))
			}
		}
		all = with
	}
	r := Reader{B: AppendFailure(all, &want[0])}
	if r.Failures(); r.End() == nil {
		t.Error("one too many was read")
	}
	long := engine.Failure{At: time.UnixMilli(1).UTC(), Worker: strings.Repeat("w", 300), Reason: strings.Repeat("r", 1<<17)}
	r = Reader{B: AddFailure(nil, &long)}
	if got := r.Failures(); r.End() != nil || len(got) != 1 || len(got[0].Worker) != 255 || len(got[0].Reason) != 1<<16-1 {
		t.Errorf("too long texts are read as %v, %v", got, r.Err)
	}
	if LastReason(nil) != nil {
		t.Error("no failures have a reason")
	}
}

// Of damaged failures nothing is shown, and the next failure replaces them.
func TestDamagedFailures(t *testing.T) {
	t.Parallel()
	one := engine.Failure{At: time.UnixMilli(1).UTC(), Attempt: 1, Worker: "w", Reason: "no luck"}
	good := AppendFailure(nil, &one)
	for _, bad := range [][]byte{{1, 0, 0, 0, 0, 0, 0, 0}, good[:len(good)-1], append(bytes.Clone(good), 1)} {
		r := Reader{B: bad}
		if got := r.Failures(); got != nil || r.End() == nil || len(LastReason(bad)) != 0 {
			t.Errorf("%x is read as %v, %v", bad, got, r.Err)
		}
		if got := AddFailure(bad, &one); !bytes.Equal(got, good) {
			t.Errorf("with one more %x is %x, want %x", bad, got, good)
		}
	}
}

// FuzzFailures: what is not well formed is refused, what is comes out again as it went in.
func FuzzFailures(f *testing.F) {
	one := engine.Failure{At: time.UnixMilli(1).UTC(), Attempt: 1, Worker: "w", Reason: "no luck"}
	f.Add([]byte{})
	f.Add(AppendFailure(AppendFailure(nil, &one), &engine.Failure{At: time.UnixMilli(-1).UTC()}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := Reader{B: b}
		all := r.Failures()
		LastReason(b)
		more := AddFailure(b, &one)
		if r.End() != nil {
			return
		}
		var again []byte
		for i := range all {
			again = AppendFailure(again, &all[i])
		}
		r = Reader{B: again}
		if got := r.Failures(); r.End() != nil || !reflect.DeepEqual(got, all) {
			t.Errorf("%+v came back as %+v, %v", all, got, r.Err)
		}
		r = Reader{B: more}
		if got := r.Failures(); r.End() != nil || !reflect.DeepEqual(got, engine.AddFailure(all, one)) {
			t.Errorf("with one more %+v is %+v, %v", all, got, r.Err)
		}
	})
}
