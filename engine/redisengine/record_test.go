package redisengine

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// Generators of what the root package lets through, and some more.
var (
	anyBytes    = rapid.SliceOfN(rapid.Byte(), 0, 40)
	anyText     = rapid.Map(anyBytes, func(b []byte) string { return string(b) })
	anyInstant  = rapid.Map(rapid.Int64Range(-62135596799999, 253402300799999), func(ms int64) time.Time { return time.UnixMilli(ms).UTC() })
	anyDuration = rapid.Map(rapid.Int64Range(0, math.MaxInt64/2), func(n int64) time.Duration { return time.Duration(n) })
	anyHeader   = rapid.Custom(func(t *rapid.T) engine.Header {
		return engine.Header{Name: anyText.Draw(t, "name"), Value: anyText.Draw(t, "value")}
	})
	anyFailure = rapid.Custom(func(t *rapid.T) engine.Failure {
		return engine.Failure{
			At: anyInstant.Draw(t, "at"), Attempt: rapid.Uint32().Draw(t, "attempt"),
			Worker: anyText.Draw(t, "worker"), Reason: anyText.Draw(t, "reason"),
		}
	})
	anyContent = rapid.Custom(func(t *rapid.T) engine.Content {
		c := engine.Content{ContentType: anyText.Draw(t, "type"), Headers: rapid.SliceOfN(anyHeader, 0, 5).Draw(t, "headers")}
		c.Body = anyBytes.Draw(t, "body")
		if n := rapid.SampledFrom([]int{0, largeContent / 40, 2 * largeContent / 40}).Draw(t, "times"); n > 0 {
			c.Body = []byte(strings.Repeat(string(c.Body), n))
		}
		return c
	})
	anyPolicy = rapid.Custom(func(t *rapid.T) engine.Policy {
		return engine.Policy{
			Priority:    rapid.OneOf(rapid.Just[uint32](codec.UsualPriority), rapid.Uint32()).Draw(t, "priority"),
			MaxAttempts: rapid.Uint32Range(1, math.MaxUint32).Draw(t, "max attempts"),
			Backoff:     rapid.SliceOfN(anyDuration, 0, 5).Draw(t, "backoff"),
			TTR:         rapid.Map(rapid.Int64Range(1, int64(24*time.Hour)), func(n int64) time.Duration { return time.Duration(n) }).Draw(t, "ttr"),
			ExpireAfter: rapid.OneOf(rapid.Just[time.Duration](0), anyDuration).Draw(t, "expire after"),
			Remember:    rapid.OneOf(rapid.Just[time.Duration](0), anyDuration).Draw(t, "remember"),
		}
	})
	anyMessage = rapid.Custom(func(t *rapid.T) engine.Message {
		policy := anyPolicy.Draw(t, "policy")
		return engine.Message{Queue: "q", Key: anyText.Draw(t, "key"), Content: anyContent.Draw(t, "content"), Terms: policy.Terms()}
	})
)

// encodeFor is encode for a queue without settings.
func encodeFor(m *engine.Message, created int64) (record, large []byte) {
	policy := m.Resolve(nil)
	return encode(m, &policy, created)
}

// normal is how contents and policies come back: what is empty is nil.
func normal(m engine.Message) engine.Message {
	if len(m.Body) == 0 {
		m.Body = nil
	}
	if len(m.Headers) == 0 {
		m.Headers = nil
	}
	if len(m.Backoff) == 0 {
		m.Backoff = nil
	}
	return m
}

// written is what has happened to a message, as a script writes it.
type written struct {
	mark                            string
	attempt                         uint32
	due, expires, deadline, started float64 // of a dead message started and died
	secret, key, worker             string
	failures                        []engine.Failure
}

func (w written) String() string {
	b := append([]byte(w.mark), 0)
	b = binary.BigEndian.AppendUint32(b, w.attempt)
	b = binary.BigEndian.AppendUint32(b, 0)
	for _, f := range []float64{w.due, w.expires, w.deadline, w.started} {
		b = appendFloat(b, f)
	}
	b = append(append(b, byte(len(w.secret))), w.secret...)
	return string(appendShort(appendShort(b, w.key), encoded(w.failures))) + w.worker
}

func encoded(all []engine.Failure) string {
	var b []byte
	for i := range all {
		b = codec.AppendFailure(b, &all[i])
	}
	return string(b)
}

var waiting = written{mark: "W", expires: math.Inf(1)}

func TestRecordKeepsEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := anyMessage.Draw(t, "message")
		// A double holds microseconds until 2255.
		created := time.UnixMilli(rapid.Int64Range(0, 9_007_199_254_000).Draw(t, "created")).UTC()
		record, large := encodeFor(&m, created.UnixMicro()+rapid.Int64Range(0, 999).Draw(t, "µs"))
		if (len(large) > 0) != (codec.ContentSize(&m.Content) >= largeContent) {
			t.Fatalf("of %d bytes of content, %d are apart", codec.ContentSize(&m.Content), len(large))
		}
		if len(large) > codec.ContentSize(&m.Content) {
			t.Fatalf("%d bytes of content are written, %d announced", len(large), codec.ContentSize(&m.Content))
		}
		got, _, err := message("q", 7, []byte(waiting.String()), record, large, 0)
		if err != nil {
			t.Fatal(err)
		}
		m = normal(m)
		want := engine.Info{ID: 7, Queue: "q", Key: m.Key, State: engine.Ready, Due: time.UnixMilli(0).UTC(), Created: created, Content: m.Content, Policy: m.Resolve(nil)}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("wrote %+v\nread  %+v", want, got)
		}
	})
}

func TestPastKeepsEverything(t *testing.T) {
	t.Parallel()
	record, _ := encodeFor(&engine.Message{}, 0)
	instants := rapid.OneOf(anyInstant, rapid.Just(time.Time{}))
	ms := func(at time.Time) float64 {
		if at.IsZero() {
			return math.Inf(1)
		}
		return float64(at.UnixMilli())
	}
	rapid.Check(t, func(t *rapid.T) {
		want := past{
			mark: rapid.SampledFrom([]byte("WLD")).Draw(t, "mark"), attempt: rapid.Uint32().Draw(t, "attempt"),
			due: anyInstant.Draw(t, "due"), expires: instants.Draw(t, "expires"),
			deadline: anyInstant.Draw(t, "deadline"), started: anyInstant.Draw(t, "started"),
		}
		instants := [2]time.Time{want.deadline, want.started}
		if want.mark == 'D' {
			want.deadline, want.died = time.Time{}, anyInstant.Draw(t, "died")
			instants = [2]time.Time{want.started, want.died}
		}
		failures := rapid.SliceOfN(anyFailure, 0, engine.MaxFailures).Draw(t, "failures")
		want.failures = []byte(encoded(failures))
		secret := ""
		if rapid.Bool().Draw(t, "leased before") {
			copy(want.secret[:], rapid.SliceOfN(rapid.Byte(), len(want.secret), len(want.secret)).Draw(t, "secret"))
			secret, want.worker = hex.EncodeToString(want.secret[:]), anyText.Draw(t, "worker")
		}
		text := written{
			string(want.mark), want.attempt, ms(want.due), ms(want.expires), ms(instants[0]), ms(instants[1]),
			secret, anyText.Draw(t, "key"), want.worker, failures,
		}.String()
		got, err := decodePast([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("wrote %+v\nread  %+v, %v", want, got, err)
		}
		now := rapid.OneOf(rapid.Just(want.due), anyInstant).Draw(t, "now").UnixMilli()
		i, _, err := message("q", 7, []byte(text), record, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case i.State == engine.Leased && want.mark == 'L' && i.Deadline.Equal(want.deadline) && i.Started.Equal(want.started) && i.Worker == want.worker && i.Died.IsZero():
		case i.State == engine.Dead && want.mark == 'D' && i.Died.Equal(want.died) && i.Deadline.IsZero():
		case want.mark == 'W' && i.Deadline.IsZero() && i.Died.IsZero() && (i.State == engine.Scheduled) == (want.due.UnixMilli() > now):
		default:
			t.Fatalf("mark %c at %d is %+v", want.mark, now, i)
		}
		last := ""
		if n := len(failures); n > 0 {
			last = failures[n-1].Reason
		}
		if i.State != engine.Leased && i.Worker != "" || i.LastError != last || !slices.Equal(i.Failures, failures) {
			t.Fatalf("%+v is %+v", want, i)
		}
		if i.Attempt != want.attempt || !i.Due.Equal(want.due) || !i.Expires.Equal(want.expires) {
			t.Fatalf("%+v is %+v", want, i)
		}
	})
}

// TestScriptsReadRecords: through Redis, every message comes back as it was pushed, and
// scripts see in it what they go by.
func TestScriptsReadRecords(t *testing.T) {
	t.Parallel()
	e := openStore(t, redistest.Start(t).URL())
	rapid.Check(t, func(r *rapid.T) {
		m := anyMessage.Draw(r, "message")
		m.Queue, m.Due = freshPrefix(), engine.When{At: anyInstant.Draw(r, "due")}
		if m.MaxAttempts == math.MaxUint32 {
			m.MaxAttempts--
		}
		result := push(t, e, m)[0]
		m = normal(m)
		got, err := e.Get(t.Context(), engine.Ref{Queue: m.Queue, ID: result.ID})
		if got.State == engine.Gone && m.ExpireAfter > 0 {
			fails(t, err, engine.ErrNotFound) // due so long ago that it has expired
			return
		}
		if err != nil {
			r.Fatal(err)
		}
		want := engine.Info{
			ID: result.ID, Queue: m.Queue, Key: m.Key, State: result.State, Due: m.Due.At, Created: got.Created,
			Content: m.Content, Policy: m.Resolve(nil),
		}
		if m.ExpireAfter > 0 {
			want.Expires = m.Due.At.Add(m.ExpireAfter.Truncate(time.Millisecond))
			if m.ExpireAfter%time.Millisecond != 0 {
				want.Expires = want.Expires.Add(time.Millisecond)
			}
		}
		if !reflect.DeepEqual(got, want) {
			r.Fatalf("pushed %+v\nread   %+v", want, got)
		}
	})
}

// TestWorkerOfTheUsual: messages of the usual policy, which scripts lease in a way of their own,
// keep the worker too.
func TestWorkerOfTheUsual(t *testing.T) {
	t.Parallel()
	e := openStore(t, redistest.Start(t).URL())
	push(t, e, engine.Message{Queue: "q"}, engine.Message{Queue: "q", Key: "key"})
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 2, Worker: "w"}})
	if err != nil || len(g.Queues[0].Messages) != 2 {
		t.Fatalf("%+v, %v", g, err)
	}
	for _, l := range g.Queues[0].Messages {
		if i, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: l.ID}); err != nil || l.Worker != "w" || i.Worker != "w" {
			t.Errorf("leased by %q, shown is %q, %v", l.Worker, i.Worker, err)
		}
	}
}

// TestRecordCutShortIsDamaged: a record may be cut anywhere but in the body, whose length is
// not stored.
func TestRecordCutShortIsDamaged(t *testing.T) {
	t.Parallel()
	small := plain("q", "key")
	small.Headers = []engine.Header{{Name: "a", Value: "b"}, {}}
	small.Backoff = []time.Duration{0, 0, time.Second}
	small.ContentType, small.Body = "text/plain", nil
	big := small
	big.Body = make([]byte, largeContent)
	for _, m := range []*engine.Message{&small, &big} {
		record, large := encodeFor(m, 0)
		for n := range record {
			if err := decodeRecord(record[:n], nil, &engine.Info{}); err == nil {
				t.Errorf("%d of %d bytes were read as a record", n, len(record))
			}
		}
		for n := 1; n < len(large)-len(m.Body); n++ {
			if err := decodeRecord(record, large[:n], &engine.Info{}); err == nil {
				t.Errorf("%d of %d bytes were read as a content", n, len(large))
			}
		}
	}
	whole := written{mark: "L", secret: strings.Repeat("0", 2*len(codec.Nonce{})), key: "key", failures: []engine.Failure{{Reason: "why"}}}.String()
	for n := range whole {
		if _, err := decodePast([]byte(whole[:n])); err == nil {
			t.Errorf("%d of %d bytes were read as a past", n, len(whole))
		}
	}
}

func TestRecordWithSomethingBehindIsDamaged(t *testing.T) {
	t.Parallel()
	m := plain("q", "key")
	m.Body = make([]byte, largeContent) // in a smaller record the rest is body
	record, _ := encodeFor(&m, 0)
	if err := decodeRecord(append(record, 'x'), nil, &engine.Info{}); err == nil {
		t.Error("a record with something behind it was read")
	}
	if _, err := decodePast([]byte(waiting.String() + "x")); err == nil {
		t.Error("a past with a worker and no lease was read")
	}
}

// FuzzDecodeRecord: what is no record is refused, and none makes more of itself than it
// is.
func FuzzDecodeRecord(f *testing.F) {
	m := plain("q", "key")
	m.Headers, m.Backoff = []engine.Header{{Name: "a", Value: "b"}}, []time.Duration{time.Second}
	record, large := encodeFor(&m, 1893456000123456)
	f.Add(string(record), string(large))
	m.Body = make([]byte, largeContent)
	record, large = encodeFor(&m, 0)
	f.Add(string(record), string(large))
	f.Add(string(record), "")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, record, large string) {
		var i engine.Info
		if err := decodeRecord([]byte(record), []byte(large), &i); err != nil {
			return
		}
		size := len(i.Key) + len(i.Backoff) + len(i.ContentType) + len(i.Body)
		for _, h := range i.Headers {
			size += 2 + len(h.Name) + len(h.Value)
		}
		if cap(i.Backoff) > len(record) || cap(i.Headers) > len(record)+len(large) || size > len(record)+len(large) {
			t.Fatalf("%d bytes became %d", len(record)+len(large), size)
		}
		again, apart := encode(&engine.Message{Key: i.Key, Content: i.Content}, &i.Policy, i.Created.UnixMicro())
		var j engine.Info
		if err := decodeRecord(again, apart, &j); err != nil || !reflect.DeepEqual(i, j) {
			t.Fatalf("%+v came back as %+v, %v", i, j, err)
		}
	})
}

// FuzzDecodePast: what is read is written again as it was.
func FuzzDecodePast(f *testing.F) {
	f.Add(waiting.String())
	f.Add(written{"L", 3, 1, math.Inf(1), 1893456000123, 0, strings.Repeat("0f", len(codec.Nonce{})), "key", "worker", nil}.String())
	f.Add(written{"D", 3, -62135596800000, math.NaN(), 0, 1e300, "", "", "", []engine.Failure{{Reason: "why"}}}.String())
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := decodePast([]byte(s))
		if err != nil {
			return
		}
		if !strings.HasSuffix(s, string(p.failures)+p.worker) || s[0] != p.mark || !strings.ContainsRune("WLD", rune(p.mark)) {
			t.Fatalf("%q was read as %+v", s, p)
		}
		for _, at := range []time.Time{p.due, p.expires, p.deadline, p.started, p.died} {
			if at.Location() != time.UTC || at.Nanosecond()%int(time.Millisecond) != 0 {
				t.Fatalf("%q has the instant %v", s, at)
			}
		}
	})
}
