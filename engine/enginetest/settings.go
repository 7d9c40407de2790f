package enginetest

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// configure writes the settings of the bed's queue, whatever they were.
func (b *bed) configure(s engine.Settings) (revision string) {
	b.Helper()
	revision, err := optional[engine.Configurer](b, "Settings", b.caps.Settings).Configure(b.Context(), b.queue, s, "")
	if err != nil || revision == "" {
		b.Fatalf("configure %+v: %v, revision %q", s, err, revision)
	}
	return revision
}

// settings reads the settings of the bed's queue.
func (b *bed) settings() (engine.Settings, string) {
	b.Helper()
	s, revision, err := optional[engine.Configurer](b, "Settings", b.caps.Settings).Settings(b.Context(), b.queue)
	if err != nil {
		b.Fatalf("settings: %v", err)
	}
	return s, revision
}

// configured fails the test unless the bed's queue has these settings.
func (b *bed) configured(want engine.Settings, revision string) {
	b.Helper()
	got, at := b.settings()
	if problem := sameSettings(got, want); problem != "" || at != revision {
		b.Fatalf("%s; revision %q, want %q", problem, at, revision)
	}
}

// sameSettings returns how got differs from want, "" if it does not.
func sameSettings(got, want engine.Settings) string {
	for _, s := range []*engine.Settings{&got, &want} {
		s.Defaults.Backoff = slices.Concat([]time.Duration{}, s.Defaults.Backoff) // nil and empty are the same
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("settings %+v, want %+v", got, want)
	}
	return ""
}

// allSet sets every field that the engine supports.
func (b *bed) allSet() engine.Settings {
	s := engine.Settings{
		Defaults: engine.Terms{
			Priority: new(uint32(0)), MaxAttempts: 3, Backoff: []time.Duration{time.Second, 0, 90 * time.Minute},
			TTR: 90 * time.Second, ExpireAfter: engine.Never, Remember: 36 * time.Hour, Isolate: new(false),
		},
		DeadKeep: 100 * 24 * time.Hour, DeadMax: engine.MaxCount, MaxPending: 7_000_000_000, InFlight: 12, Rate: 12.625, Burst: 40,
	}
	s.Defaults = b.able(s.Defaults)
	return s
}

var settingsTests = []test{
	{"a queue that was never configured has none", func(b *bed) {
		b.configuredNever()
		b.push(b.msg("k", dueNow))
		b.configuredNever()
	}},
	{"all that is set comes back", func(b *bed) {
		for _, s := range []engine.Settings{
			b.allSet(), {}, {Rate: engine.MinRate}, {Rate: 1.0 / 3, Burst: 1}, {Defaults: engine.Terms{ExpireAfter: time.Millisecond}},
			{Defaults: engine.Terms{Remember: engine.Never}}, {Defaults: engine.Terms{Isolate: new(true)}}, {Defaults: engine.Terms{Priority: new(uint32(4_294_967_295))}}, b.allSet(),
		} {
			s.Defaults = b.able(s.Defaults)
			b.configured(s, b.configure(s))
		}
	}},
	{"a write on condition of its revision", func(b *bed) {
		c := optional[engine.Configurer](b, "Settings", b.caps.Settings)
		_, never := b.settings()
		first, err := c.Configure(b.Context(), b.queue, engine.Settings{DeadMax: 1}, never)
		b.is(err, nil)
		second, err := c.Configure(b.Context(), b.queue, engine.Settings{DeadMax: 2}, first)
		b.is(err, nil)
		for _, stale := range []string{never, first, second + "0", "0" + second, second[:len(second)-1] + "x", "-1", "x", " ", "\x00", "é", "18446744073709551616"} {
			_, err = c.Configure(b.Context(), b.queue, engine.Settings{DeadMax: 3}, stale)
			b.hints(engine.ErrStale, err, hintOf(engine.RefuseRevision("", second)))
		}
		b.configured(engine.Settings{DeadMax: 2}, second)
	}},
	{"settings that are unset go on from their revision", func(b *bed) {
		c := optional[engine.Configurer](b, "Settings", b.caps.Settings)
		_, never := b.settings()
		b.configure(engine.Settings{DeadMax: 1})
		unset := b.configure(engine.Settings{})
		_, err := c.Configure(b.Context(), b.queue, engine.Settings{DeadMax: 2}, never)
		b.is(err, engine.ErrStale)
		b.configured(engine.Settings{}, unset)
		if b.caps.Purge {
			_, err := b.e.(engine.Purger).Purge(b.Context(), b.queue, engine.PurgeDead|engine.PurgeFinished)
			b.is(err, nil)
			b.configured(engine.Settings{}, unset)
		}
	}},
	{"an engine keeps no slice of the caller's", func(b *bed) {
		s := b.allSet()
		b.configure(s)
		s.Defaults.Backoff[0] = 1
		got, revision := b.settings()
		got.Defaults.Backoff[1] = 1
		if b.caps.Priority {
			*s.Defaults.Priority, *got.Defaults.Priority = 9, 9
		}
		b.configured(b.allSet(), revision)
	}},
	{"a queue that has settings is listed, until they are unset", func(b *bed) {
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		listed := func() bool {
			page, _, err := c.Queues(b.Context(), b.queue[:len(b.queue)-1], 1)
			b.is(err, nil)
			return len(page) == 1 && page[0].Queue == b.queue
		}
		for range 2 {
			if b.configure(engine.Settings{DeadKeep: time.Hour}); !listed() {
				b.Fatal("it is not listed")
			}
			if b.configure(engine.Settings{}); listed() {
				b.Fatal("it is listed")
			}
		}
	}},
	{"to configure is hinted", func(b *bed) {
		b.hinted("configure", func() { b.configure(engine.Settings{InFlight: 3}) })
	}},
}

func (b *bed) configuredNever() {
	b.Helper()
	b.configured(engine.Settings{}, "0")
}

var defaultsTests = []test{
	{"a push takes what it leaves unset", func(b *bed) {
		b.need("Get", b.caps.Get)
		d := b.allSet().Defaults
		b.configure(engine.Settings{Defaults: d})
		bare := engine.Message{Queue: b.queue, Due: dueLater}
		r := b.push(bare)
		if problem := samePolicy(b.get(b.id(r.ID)).Policy, bare.Resolve(&d)); problem != "" {
			b.Error(problem)
		}
		own := b.msg("", dueLater)
		own.Priority, own.MaxAttempts = new(uint32(9)), 5
		own.Terms = b.able(own.Terms)
		if problem := samePolicy(b.get(b.id(b.push(own).ID)).Policy, own.Resolve(&d)); problem != "" {
			b.Error(problem)
		}
		b.configure(engine.Settings{})
		if problem := samePolicy(b.get(b.id(r.ID)).Policy, bare.Resolve(&d)); problem != "" {
			b.Errorf("the settings changed the message: %s", problem)
		}
		if problem := samePolicy(b.get(b.id(b.push(bare).ID)).Policy, bare.Resolve(nil)); problem != "" {
			b.Error(problem)
		}
	}},
}
