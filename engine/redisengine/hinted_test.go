package redisengine

import (
	"slices"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine"
)

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
		e.hinted(hint)
		e.hinted(hint)
		if len(e.queues) != 1 || len(q.shards) != 2 {
			t.Fatalf("%q made queues: %v", hint, e.queues)
		}
		turns := q.shards[0].turns + q.shards[1].turns
		switch {
		case strings.HasPrefix(hint, "SELF ") && turns != 0:
			t.Fatalf("%q of its own was taken in", hint)
		case len(told) > 0 && (told[0] == "q") != (turns > 0), len(told) > 0 && (engine.CheckQueue("", told[0]) != nil || !strings.Contains(hint, " "+told[0]+" ")):
			t.Fatalf("%q was told as %q", hint, told)
		}
	})
}

func TestHintWakes(t *testing.T) {
	t.Parallel()
	e := &Engine{prefix: "p", origin: "SELF", shards: 2, queues: make(map[string]*queue), printed: make(map[fingerprint]*queue)}
	s := e.queue("q").shards[1]
	s.learn(2000, false, 0, 0, start)
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
		{"ORIGIN 1 other 500", 2, 1000}, // of which there is nothing here yet
		{"ORIGIN 1 no!name 500", 2, 1000},
	} {
		e.hinted(step.hint)
		if len(told) != step.times || s.known() != step.next {
			t.Errorf("after %q: told %q, next %d", step.hint, told, s.known())
		}
	}
	if e.hinted("ORIGIN 0 q 1"); e.queue("q").shards[0].known() > 1 || s.known() != 1000 {
		t.Error("a hint was taken for another shard")
	}
	if !slices.Equal(told, []string{"q", "other", "q"}) {
		t.Errorf("told %q", told)
	}
}
