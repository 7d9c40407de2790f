package record

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestStored(t *testing.T) {
	c := Content{Created: 7, Policy: engine.Policy{Priority: 3, MaxAttempts: 2, TTR: time.Second, Backoff: []time.Duration{1, 2}}}
	c.Body = []byte("body")
	content := c.Append(nil)
	s := State{Due: -5, Expires: 9, Attempt: 1, Failures: failures}
	b := AppendKeyed(nil, []byte("key"), AppendValue(nil, &s, content))
	key, value, err := ParseKeyed(b)
	if err != nil || string(key) != "key" {
		t.Fatal(key, err)
	}
	was, rest, err := ParseValue(value)
	if err != nil || !reflect.DeepEqual(was, s) || !bytes.Equal(rest, content) {
		t.Fatal(was, rest, err)
	}
	h, err := ParseHead(rest)
	if err != nil || !reflect.DeepEqual(h, Head{Created: 7, Policy: c.Policy}) {
		t.Fatal(h, err)
	}
	tr := Trace{Due: 1, Ending: engine.Cancelled, Ended: -2}
	if got, err := ParseTrace(tr.Append(nil)); err != nil || got != tr {
		t.Fatal(got, err)
	}
}

func TestPast(t *testing.T) {
	for _, p := range []HistoryEntry{listed, {Due: -5, Created: now, Ending: engine.Expired}} {
		b := p.Append(nil)
		if got, err := ParseHistoryEntry(b); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%+v came back as %+v, %v", p, got, err)
		}
		for n := range b {
			if _, err := ParseHistoryEntry(b[:n]); err == nil {
				t.Errorf("%d of %d bytes are read", n, len(b))
			}
		}
		if _, err := ParseHistoryEntry(append(b, 0)); err == nil {
			t.Error("one byte more is read")
		}
	}
}

func FuzzStored(f *testing.F) {
	f.Add((&Trace{Due: 1, Ending: engine.Acked}).Append(nil))
	f.Add(AppendKeyed(nil, []byte("k"), AppendValue(nil, &State{Expires: Never}, (&Content{}).Append(nil))))
	f.Fuzz(func(t *testing.T, b []byte) {
		if tr, err := ParseTrace(b); err == nil {
			if again, err := ParseTrace(tr.Append(nil)); err != nil || again != tr {
				t.Fatal(again, err)
			}
		}
		key, value, err := ParseKeyed(b)
		if err != nil {
			return
		}
		s, content, err := ParseValue(value)
		if err != nil {
			return
		}
		k, v, err := ParseKeyed(AppendKeyed(nil, key, AppendValue(nil, &s, content)))
		if err != nil || !bytes.Equal(k, key) {
			t.Fatal(k, err)
		}
		if again, rest, err := ParseValue(v); err != nil || !reflect.DeepEqual(again, s) || !bytes.Equal(rest, content) {
			t.Fatal(again, rest, err)
		}
		_, _ = ParseHead(content)
	})
}
