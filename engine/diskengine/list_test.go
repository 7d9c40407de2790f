package diskengine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
)

// TestListPastWhatExpired lists the one message behind a crowd that has expired: no
// page walks it all, and the pages lead there.
func TestListPastWhatExpired(t *testing.T) {
	e, clock := openMem(t)
	var msgs []engine.Message
	for range listMost + 10 {
		m := waiting("", time.Second)
		m.ExpireAfter = time.Second
		msgs = append(msgs, m)
	}
	pushAll(t, e, append(msgs, waiting("last", 2*time.Second)))
	clock.Advance(time.Minute)
	query := engine.ListQuery{Queue: "q", State: engine.Ready, Limit: 10}
	page, err := e.List(t.Context(), query)
	if err != nil || len(page.Messages) != 0 || page.Next == "" {
		t.Fatalf("the first page: %v, %d messages, next %q", err, len(page.Messages), page.Next)
	}
	query.After = page.Next
	page, err = e.List(t.Context(), query)
	if err != nil || len(page.Messages) != 1 || page.Messages[0].Key != "last" || page.Next != "" {
		t.Fatalf("the second page: %v, %+v", err, page)
	}
}

// TestListRanges lists parts of each state, both ways and over pages of some sizes,
// and compares them with what a look at all of it tells.
func TestListRanges(t *testing.T) {
	e, clock := openMem(t)
	ctx := t.Context()
	var msgs []engine.Message
	for i := range 60 {
		m := waiting("", time.Duration(i/3)*time.Second)
		m.TTR = time.Duration(1+i%7) * time.Hour
		msgs = append(msgs, m)
	}
	pushAll(t, e, msgs)
	for range 4 {
		clock.Advance(3 * time.Second)
		g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 8, Remote: true}})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range g.Queues[0].Messages[:3] {
			if s, err := e.Settle(ctx, []engine.Settlement{{Token: l.Token, Do: engine.Bury}}); err != nil || s[0].Err != nil {
				t.Fatal(err, s)
			}
		}
	}
	list := func(q engine.ListQuery) (all []engine.Info) {
		for {
			p, err := e.List(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p.Messages...)
			if q.After = p.Next; q.After == "" {
				return all
			}
		}
	}
	at := func(i engine.Info) time.Time {
		switch i.State {
		case engine.Leased:
			return i.Deadline
		case engine.Dead:
			return i.Died
		}
		return i.Due
	}
	for _, state := range []engine.State{engine.Scheduled, engine.Ready, engine.Leased, engine.Dead} {
		all := list(engine.ListQuery{Queue: "q", State: state, Limit: 100})
		if len(all) < 4 {
			t.Fatalf("only %d are %v", len(all), state)
		}
		ends := []time.Time{{}, at(all[0]), at(all[1]).Add(1), at(all[len(all)/2]), at(all[len(all)-1]), at(all[len(all)-1]).Add(1)}
		for _, from := range ends {
			for _, to := range ends {
				for _, newest := range []bool{false, true} {
					var want []engine.ID
					for _, i := range all {
						if !at(i).Before(from) && (to.IsZero() || at(i).Before(to)) {
							want = append(want, i.ID)
						}
					}
					if newest {
						slices.Reverse(want)
					}
					for _, limit := range []int{1, 4, 100} {
						var got []engine.ID
						for _, i := range list(engine.ListQuery{Queue: "q", State: state, From: from, To: to, Newest: newest, Limit: limit}) {
							got = append(got, i.ID)
						}
						if !slices.Equal(got, want) {
							t.Errorf("%v from %v to %v, newest %v, by %d: %v, want %v", state, from, to, newest, limit, got, want)
						}
					}
				}
			}
		}
	}
}

// TestNewerPebble refuses a store that a newer Pebble has written, and says so.
func TestNewerPebble(t *testing.T) {
	cfg := Config{FS: vfs.NewMem(), Logger: quietLog}
	e, err := Open("data", &cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := cfg.FS.Create("data/store/marker.format-version.999999.999", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("data", &cfg); !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("opened: %v", err)
	}
}
