package enginetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var pushTests = []test{
	{"a message due now is created ready", func(b *bed) {
		r := b.push(b.msg("k", dueNow))
		if r.Outcome != engine.Created || r.ID == 0 || r.State != engine.Ready || r.Due.IsZero() {
			b.Fatalf("result %+v", r)
		}
		if got := b.lease1(0); got.ID != r.ID || !got.Due.Equal(r.Due) {
			b.Fatalf("leased %+v, pushed %+v", got, r)
		}
	}},
	{"a message due later is created scheduled", func(b *bed) {
		before := b.now()
		r := b.push(b.msg("k", dueLater))
		if r.Outcome != engine.Created || r.State != engine.Scheduled {
			b.Fatalf("result %+v", r)
		}
		if r.Due.Before(before.Add(long).Truncate(b.caps.Precision)) || r.Due.After(b.now().Add(long+b.caps.Precision)) {
			b.Fatalf("due %v, pushed with %v from %v", r.Due, long, before)
		}
		b.none("not due yet")
	}},
	{"all of a message comes back with its lease", func(b *bed) {
		m := b.msg("schlüssel/1", dueNow)
		m.Body = []byte{0, 1, 0xff, 0xfe, '\n'}
		m.ContentType = "application/x-thing"
		m.Headers = []engine.Header{{Name: "B", Value: "2"}, {Name: "a", Value: ""}, {Name: "B", Value: "1"}}
		m.Priority, m.MaxAttempts, m.TTR, m.ExpireAfter = new(uint32(7)), 3, 90*time.Second, long
		m.Backoff = []time.Duration{time.Second, 15 * time.Millisecond}
		m.Terms = b.able(m.Terms)
		r := b.push(m)
		l := b.lease1(0)
		if problem := sameContent(l.Content, m.Content); problem != "" {
			b.Error(problem)
		}
		if problem := samePolicy(l.Policy, m.Resolve(nil)); problem != "" {
			b.Error(problem)
		}
		if l.ID != r.ID || l.Queue != m.Queue || l.Key != m.Key || l.Attempt != 1 || l.Created.IsZero() || l.LastError != "" {
			b.Errorf("leased %+v", l.Info)
		}
		if want := expires(r.Due, l.Policy); !l.Expires.Equal(want) {
			b.Errorf("expires %v, want %v", l.Expires, want)
		}
	}},
	{"a body may be empty, and large", func(b *bed) {
		size := 1 << 20
		if b.caps.MaxBody > 0 {
			size = min(size, b.caps.MaxBody)
		}
		m := b.msg("", dueNow)
		m.Body = nil
		b.push(m)
		if l := b.lease1(0); len(l.Body) != 0 {
			b.Fatalf("body %q", l.Body)
		}
		m.Body = slices.Repeat([]byte("x\x00"), size/2)
		b.push(m)
		if l := b.lease1(0); !slices.Equal(l.Body, m.Body) {
			b.Fatalf("%d bytes came back of %d", len(l.Body), len(m.Body))
		}
	}},
	{"a body above the engine's limit is refused alone", func(b *bed) {
		b.need("MaxBody", b.caps.MaxBody > 0)
		big := b.msg("big", dueNow)
		big.Body = make([]byte, b.caps.MaxBody+1)
		r, err := b.e.Push(b.Context(), []engine.Message{big, b.msg("small", dueNow)})
		if err != nil || r[1].Err != nil {
			b.Fatalf("%v, %+v", err, r)
		}
		b.is(r[0].Err, engine.ErrTooLarge)
	}},
	{"a past due is kept as given and ready at once", func(b *bed) {
		at := b.now().Add(-time.Hour).Truncate(time.Second)
		r := b.push(b.msg("k", engine.When{At: at}))
		if !r.Due.Equal(at) || r.State != engine.Ready {
			b.Fatalf("due %v, state %v; pushed with %v", r.Due, r.State, at)
		}
		if l := b.lease1(0); !l.Due.Equal(at) {
			b.Fatalf("leased with due %v", l.Due)
		}
	}},
	{"a future due rounds up to the millisecond", func(b *bed) {
		b.need("Precision of 1ms", b.caps.Precision <= time.Millisecond)
		at := b.now().Add(long).Truncate(time.Second)
		for add, want := range map[time.Duration]time.Duration{
			0: 0, 1: time.Millisecond, 999_999: time.Millisecond, time.Millisecond: time.Millisecond, 1_000_001: 2 * time.Millisecond,
		} {
			if r := b.push(b.msg("", engine.When{At: at.Add(add)})); !r.Due.Equal(at.Add(want)) {
				b.Errorf("due %v became %v", at.Add(add), r.Due)
			}
		}
	}},
	{"the longest spans that can be said", func(b *bed) {
		b.need("any delay", b.caps.AnyDelay())
		m := b.msg("k", engine.When{In: math.MaxInt64})
		m.Terms = b.able(engine.Terms{ExpireAfter: math.MaxInt64})
		if r := b.push(m); r.State != engine.Scheduled || r.Due.Before(b.now().AddDate(292, 0, 0)) {
			b.Fatalf("%+v", r)
		}
		m = b.msg("l", dueNow)
		m.Terms = b.able(engine.Terms{ExpireAfter: math.MaxInt64, Backoff: []time.Duration{math.MaxInt64}})
		r := b.push(m)
		if l := b.lease1(0); l.ID != r.ID {
			b.Fatalf("leased %+v", l)
		} else if s := b.settle(engine.Settlement{Token: l.Token, Do: engine.Retry}); s.State != engine.Scheduled {
			b.Fatalf("%+v", s)
		}
		b.none("both are far away")
	}},
	{"the year 9999 is kept", func(b *bed) {
		b.need("any delay", b.caps.AnyDelay())
		at := time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
		if r := b.push(b.msg("k", engine.When{At: at})); !r.Due.Equal(at) || r.State != engine.Scheduled {
			b.Fatalf("result %+v", r)
		}
		if g := b.lease(1, 0); len(g.Messages) > 0 || g.More || b.caps.Foresight && !g.NextDue.Equal(at) {
			b.Fatalf("grant %+v", g)
		}
	}},
	{"results are in order, one each", func(b *bed) {
		var msgs []engine.Message
		for i := range 300 {
			m := b.msg(fmt.Sprint(i), dueNow)
			m.Body = []byte(fmt.Sprint(i))
			msgs = append(msgs, m)
		}
		r, err := b.e.Push(b.Context(), msgs)
		if err != nil || len(r) != len(msgs) {
			b.Fatalf("%d results, error %v", len(r), err)
		}
		body := map[engine.ID]string{}
		for _, l := range b.leaseN(len(msgs), 0) {
			body[l.ID] = string(l.Body)
		}
		for i := range r {
			if r[i].Err != nil || body[r[i].ID] != fmt.Sprint(i) {
				b.Fatalf("result %d is %+v, its body %q", i, r[i], body[r[i].ID])
			}
		}
	}},
	{"an engine keeps no slice of the caller's", func(b *bed) {
		m := b.msg("k", dueNow)
		m.Body = []byte("original")
		m.Headers = []engine.Header{{Name: "h", Value: "original"}}
		b.push(m)
		copy(m.Body, "SCRIBBLE")
		m.Headers[0].Value = "scribble"
		m.Backoff[0] = 1
		l := b.lease1(0)
		if string(l.Body) != "original" || l.Headers[0].Value != "original" || l.Backoff[0] != long {
			b.Fatalf("leased %+v", l.Info)
		}
		copy(l.Body, "SCRIBBLE")
		l.Headers[0].Value = "scribble"
		b.settle(engine.Settlement{Token: l.Token, Do: engine.Release})
		if l = b.lease1(0); string(l.Body) != "original" || l.Headers[0].Value != "original" {
			b.Fatalf("leased again %+v", l.Info)
		}
	}},
}

func sameContent(got, want engine.Content) string {
	if string(got.Body) != string(want.Body) || got.ContentType != want.ContentType || !slices.Equal(got.Headers, want.Headers) {
		return fmt.Sprintf("content %+v, want %+v", got, want)
	}
	return ""
}

func samePolicy(got, want engine.Policy) string {
	if got.Priority != want.Priority || got.MaxAttempts != want.MaxAttempts || got.TTR != want.TTR ||
		got.ExpireAfter != want.ExpireAfter || got.Remember != want.Remember || got.Isolate != want.Isolate || !slices.Equal(got.Backoff, want.Backoff) {
		return fmt.Sprintf("policy %+v, want %+v", got, want)
	}
	return ""
}
