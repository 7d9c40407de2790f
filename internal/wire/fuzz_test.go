package wire

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tarryhq/tarry/engine"
)

// FuzzMessage: whatever comes in, reading ends, accepts only JSON, and keeps the body
// as it stood.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"body":{"a":[1,2,{"b":null}]},"key":"k","delay":"1d12h"}`, `{"body_base64":"AAEC","content_type":"x/y"}`,
		`{"headers":{"a":"1","b":["2","3"]},"backoff":["1s","2m"],"ttr":"1s","priority":5}`, `{"headers":[["a","b"]],"due":"2030-01-01T00:00:00.5Z"}`,
		`{"key":"\u0061\ud83d\ude00","on_conflict":"keep_due","max_attempts":3,"expire_after":"1h"}`, `{"a":1}`, `[`, `{"body":1}}`, "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Reader
		r.Reset(bytes.Clone(data))
		var m engine.Message
		got := PushedMessage.Read(&r, &m)
		if r.Err() != nil {
			return
		}
		var std map[string]json.RawMessage
		if err := json.Unmarshal(data, &std); err != nil {
			t.Fatalf("accepted %q: %v", data, err)
		}
		if got.Has(FieldBody) && (!bytes.Contains(data, m.Body) || !json.Valid(m.Body)) {
			t.Fatalf("body %q of %q", m.Body, data)
		}
		if m.Due.In < 0 || m.ExpireAfter < 0 {
			t.Fatalf("negative: %+v", m)
		}
	})
}

// FuzzRead reads all other requests, and all answers.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"refs":[{"queue":"q","key":"k"},{"queue":"q","id":"7","if_state":"dead"}]}`,
		`{"settings":{"priority":0,"dead_keep":"7d","dead_max":5,"in_flight":1,"rate":0.5,"burst":2,"remember":"0s"},"revision":"7"}`,
		`{"settlements":[{"lease":"t","do":"retry","delay":"1s","reason":"r"},{"lease":"t","do":"extend","ttr":"1s"}]}`,
		`{"queues":["a","b"],"max":10,"wait":"20s","ttr":"60s"}`, `{"queues":["a"],"keep":true,"wait":"1s","room":[{"queue":"a","max":0}]}`, `{"set":"s","wait":"1s"}`,
		`{"messages":[{"queue":"q","body":1},{"queue":"q","nope":[{}]},3],"atomic":false}`,
		`{"ids":["1","x"],"limit":3}`, `{"for":"1h"}`, `{"dead":true}`, `{"poll":"p"}`, `{"ttr":"1s"}`, `{"due":"2030-01-01T00:00:00.500Z"}`, ``,
		`{"error":{"code":"exists","message":"m","hint":"h","id":"1","queue":"q","key":"k","due":null,"state":"finished","ending":"acked","ended":null}}`,
		`{"results":[{"lease":"t","ok":true,"state":"scheduled","until":"2030-01-31T00:00:00Z"},{"ok":false,"error":{"code":"invalid"}}],"failed":1}`,
		`{"messages":[{"id":"1","headers":[["a","b"]],"body":{"a":1},"lease":"t"}],"next_due":null,"now":"2030-01-01T00:00:00.000Z","queues":[{"queue":"q","more":false,"held":true}]}`,
		`{"id":"1","state":"finished","created":"2030-01-30T00:00:00Z","attempt":2,"last_error":"no","failures":[{"at":null}],"worker":"w","started":null,"ending":"acked","ended":null}`,
		`{"id":"1","state":"finished","ending":"expired","ended":"2030-01-31T00:00:00Z","forgotten":"2030-02-01T00:00:00Z"}`,
		`{"step":"1m","buckets":[{"from":"2030-01-01T00:00:00.000Z","count":1}]}`, `{"count":1,"skipped":2,"later":{"grown":[]}}`,
	} {
		f.Add([]byte(s))
	}
	requests := []func(r *Reader){
		func(r *Reader) {
			var s Settings
			if Configuring.Read(r, &s); r.Err() == nil && (s.DeadKeep < 0 || s.DeadMax < 0 || s.Rate < 0 || s.Rate > engine.MaxRate) {
				panic("settings out of bounds")
			}
		},
		reads(NewBatch), reads(Cancelling), reads(Settling), reads(Leasing), reads(Rescheduling), reads(Redriving), reads(Dropping),
		reads(Pausing), reads(Purging), reads(Claiming), reads(PollEnding), reads(Backing), reads(None),
	}
	answers := []func(data []byte) error{
		answersAs(Failed), resultsAs(PushResult), resultsAs(SettleResult), resultsAs(CancelResult), answersAs(LeaseAnswer), answersAs(MessagePage),
		answersAs(QueuePage), answersAs(ForecastAnswer), answersAs(Redriven), answersAs(Info), answersAs(Configured), answersAs(BackedUp),
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for i, read := range requests {
			var r Reader
			r.Reset(bytes.Clone(data))
			if read(&r); r.Err() == nil && len(data) > 0 && !json.Valid(data) {
				t.Fatalf("request %d accepted %q", i, data)
			}
		}
		for i, read := range answers {
			if err := read(bytes.Clone(data)); err == nil && !json.Valid(data) {
				t.Fatalf("answer %d accepted %q", i, data)
			}
		}
		_, _ = ReadServer(data)
	})
}

func reads[T any](o *Object[T]) func(r *Reader) { return func(r *Reader) { o.Read(r, new(T)) } }

func answersAs[T any](o *Object[T]) func(data []byte) error {
	return func(data []byte) error {
		_, err := o.Answer(data)
		return err
	}
}

func resultsAs[T any](o *Object[T]) func(data []byte) error {
	return func(data []byte) error { return ReadResults(data, o, func(*T) {}) }
}

// FuzzPath: any queue and key come out of a path as they were escaped into it.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"a/b", "/", "//", "a b", "é", "%2F", "?", "#", "\xff/", "..a", ".", "..", "claim"} {
		f.Add("orders", s, s)
		f.Add(s, "/", "x")
	}
	pattern := []string{"v1", "queues", "*", "keys", "*"}
	f.Fuzz(func(t *testing.T, queue, key, any string) {
		if p, ok := ParsePath(any); ok && p.n == 0 {
			t.Fatalf("%q has no segments", any)
		}
		if queue == "" || key == "" {
			return
		}
		want := engine.Ref{Queue: queue, Key: key}
		p, ok := ParsePath(RefPath(want))
		if !ok || !p.Is(pattern) {
			t.Fatalf("%q is no path of a key", RefPath(want))
		}
		if got, err := p.Ref(); err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	})
}

// FuzzListQuery: a query that is read says the same when it is written anew.
func FuzzListQuery(f *testing.F) {
	for _, s := range []string{
		"state=dead&from=2030-01-01T00:00:00.000000001Z&to=2030-01-01T02:00:00%2B01:00&order=desc&limit=5&body=true&after=x",
		"from=9999-12-31T23:59:59.9-23:59", "to=0000-01-01T00:00:00%2B23:59", "order=up", "state=finished", "from=", "state=gone&state=dead", "%", "if_state=dead",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if s, err := RefQuery.ParseQuery(raw); err == nil && RefQuery.FormatQuery(&s) == "" && s != engine.Gone {
			t.Fatalf("%q became %v", raw, s)
		}
		if f, err := FindQuery.ParseQuery(raw); err == nil && (f.Key == "") == (f.Chosen == Chosen{}) {
			t.Fatalf("%q became %+v", raw, f)
		}
		l, err := ListQuery.ParseQuery(raw)
		if err != nil {
			return
		}
		text := ListQuery.FormatQuery(&l)
		again, err := ListQuery.ParseQuery(text)
		if err != nil || ListQuery.FormatQuery(&again) != text {
			t.Fatalf("%q became %q and then %q, %v", raw, text, ListQuery.FormatQuery(&again), err)
		}
	})
}

// A state that is empty may come from a variable that was not set, so it does not count as
// missing.
func TestEmptyStateIsRefused(t *testing.T) {
	if s, err := RefQuery.ParseQuery("if_state="); err == nil {
		t.Errorf("read as %v", s)
	}
}
