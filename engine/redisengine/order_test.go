package redisengine

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// inEnglish has a server run in a locale in which Lua orders texts as people do.
func inEnglish(t *testing.T) redistest.Option {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("localedef", "-i", "en_US", "-f", "ISO-8859-1", filepath.Join(dir, "en_US")).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no locale can be made for Redis: %v\n%s", err, out)
	}
	return redistest.Env("LOCPATH="+dir, "LC_ALL=en_US")
}

// TestOrderWhateverTheLocale: messages due at once go by their ids, however the server
// orders texts.
func TestOrderWhateverTheLocale(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, inEnglish(t))
	m := s.Do("EVAL", "return 'a' < 'B' and 1 or 0", "0")
	if n, err := m.AsInt64(); err != nil || n != 1 {
		t.Fatalf("the server does not order as people do: %d, %v", n, err)
	}
	clock := enginetest.NewClock()
	e := openStore(t, s.URL(), "shards=1")
	e.stopped = clock.Now
	const n = 700
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = plain("q", "")
		msgs[i].Due.In = time.Minute
		if i%2 == 0 {
			msgs[i].ExpireAfter = time.Hour
		}
	}
	var want []engine.ID
	for _, r := range push(t, e, msgs...) {
		want = append(want, r.ID)
	}
	slices.Sort(want)
	list := func(state engine.State, newest bool) (ids []engine.ID) {
		q := engine.ListQuery{Queue: "q", State: state, Limit: 37, Newest: newest}
		for range 2 * n {
			page, err := e.List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range page.Messages {
				ids = append(ids, i.ID)
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		return ids
	}
	back := slices.Clone(want)
	slices.Reverse(back)
	for _, state := range []engine.State{engine.Scheduled, engine.Ready} {
		if got := list(state, false); !slices.Equal(got, want) {
			t.Errorf("%d %s are listed, or not in order", len(got), state)
		}
		if got := list(state, true); !slices.Equal(got, back) {
			t.Errorf("%d %s are listed, or not in the reverse order", len(got), state)
		}
		clock.Advance(time.Minute)
	}
	var got []engine.ID
	for _, l := range leaseAll(t, e, "q") {
		got = append(got, l.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d are leased, or not in order", len(got))
	}
}
