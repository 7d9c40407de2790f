package redisengine

import (
	"strings"
	"testing"
)

func TestTokenIsReadAsWritten(t *testing.T) {
	t.Parallel()
	want := token{fingerprintOf("q"), newID(7, 8, 9), [nonceBytes]byte{0, 1, 0xff}}
	if got, ok := parseToken(want.String()); !ok || got != want {
		t.Errorf("wrote %+v, read %+v, %v", want, got, ok)
	}
}

// FuzzParseToken: a lease has one token; whatever else is given is none.
func FuzzParseToken(f *testing.F) {
	f.Add(token{fingerprintOf("q"), newID(7, 8, 9), [nonceBytes]byte{1}}.String())
	f.Add(token{}.String())
	f.Add(strings.Repeat("_", 38))
	f.Add(strings.Repeat("A", 37) + "\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := parseToken(s); ok && got.String() != s {
			t.Fatalf("%q was read as %+v, which is %q", s, got, got.String())
		}
	})
}

// FuzzParsePlace: whatever is taken for a place in a list is one for scripts, too.
func FuzzParsePlace(f *testing.F) {
	f.Add(place{1893456000123, member(newID(7, 8, 9))}.String())
	f.Add(place{-62135596800000, member(1)}.String())
	f.Add("")
	f.Add(".")
	f.Add("inf.1234567890123456789")
	f.Add("(1.1234567890123456789")
	f.Add("1.12345678901234567890")
	f.Add("1.2.1234567890123456789")
	f.Add("000000000000000000001.1234567890123456789")
	f.Fuzz(func(t *testing.T, s string) {
		at, id, ok := parsePlace(s)
		switch {
		case !ok:
		case s == "":
			if at != "" || id != "" {
				t.Fatalf("nothing was read as %q and %q", at, id)
			}
		case at+"."+id != s, at == "", len(at) > 20, strings.Trim(at, "+-0123456789") != "", len(id) != len(member(1)), strings.Trim(id, "0123456789") != "":
			t.Fatalf("%q was read as %q and %q", s, at, id)
		}
	})
}

// FuzzTold: anybody can publish on the channel.
func FuzzTold(f *testing.F) {
	f.Add("ORIGIN 0 q 1893456000123")
	f.Add("ORIGIN 1 q -1")
	f.Add("SELF 0 q 1")
	f.Add("ORIGIN 2 q 1")
	f.Add("ORIGIN -1 q 1")
	f.Add("ORIGIN 0 other 1")
	f.Add("ORIGIN 0 q inf")
	f.Add("ORIGIN 0 q 99999999999999999999")
	f.Add("   ")
	f.Add("")
	f.Fuzz(func(t *testing.T, hint string) {
		e := &Engine{prefix: "p", origin: "SELF", shards: 2, queues: make(map[string]*queue), printed: make(map[fingerprint]*queue)}
		q := e.queue("q")
		var told []string
		e.watchers.Watch(func(name string) { told = append(told, name) })
		e.told(hint)
		e.told(hint)
		if len(e.queues) != 1 || len(q.shards) != 2 {
			t.Fatalf("%q made queues: %v", hint, e.queues)
		}
		turns := q.shards[0].turns + q.shards[1].turns
		switch {
		case strings.HasPrefix(hint, "SELF ") && turns != 0:
			t.Fatalf("%q of its own was taken in", hint)
		case len(told) > 0 && (turns == 0 || told[0] != "q"):
			t.Fatalf("%q was told as %q", hint, told)
		}
	})
}

func TestToldWakes(t *testing.T) {
	t.Parallel()
	e := &Engine{prefix: "p", origin: "SELF", shards: 2, queues: make(map[string]*queue), printed: make(map[fingerprint]*queue)}
	s := e.queue("q").shards[1]
	s.learn(2000, 0, 0, start)
	var told []string
	e.watchers.Watch(func(name string) { told = append(told, name) })
	for _, step := range []struct {
		hint  string
		times int
		next  int64
	}{
		{"ORIGIN 1 q 3000", 0, 2000},
		{"ORIGIN 1 q 1000", 1, 1000},
		{"ORIGIN 1 q 1500", 1, 1000},
		{"SELF 1 q 500", 1, 1000},
		{"ORIGIN 1 other 500", 1, 1000},
	} {
		e.told(step.hint)
		if len(told) != step.times || s.known() != step.next {
			t.Errorf("after %q: told %q, next %d", step.hint, told, s.known())
		}
	}
	if e.told("ORIGIN 0 q 1"); e.queue("q").shards[0].known() > 1 || s.known() != 1000 {
		t.Error("a hint was taken for another shard")
	}
	if len(told) != 2 || told[0] != "q" {
		t.Errorf("told %q", told)
	}
}
