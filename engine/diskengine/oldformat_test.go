package diskengine

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestStoreFromBeforeSettings opens a store as it was written before there were settings
// and remembered keys, and carries it on.
func TestStoreFromBeforeSettings(t *testing.T) {
	clock := enginetest.NewClock()
	now := clock.Now().UnixMilli()
	cfg := &Config{FS: vfs.NewMem(), Now: clock.Now, Logger: quietLog, MinFreeBytes: -1}
	e, err := Open("data", cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := e.store.db.NewBatch()
	var (
		join   = func(parts ...string) string { return strings.Join(parts, "") }
		u64    = func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
		at     = func(ms int64) string { return u64(uint64(ms) ^ 1<<63) }
		signed = func(n int64) string { return string(binary.AppendVarint(nil, n)) }
		queue  = "\x00\x00\x00\x01"
		set    = func(kind, rest, value string) {
			if err := b.Set([]byte(kind+rest), []byte(value), nil); err != nil {
				t.Fatal(err)
			}
		}
	)
	// Records: version, flags, due, created, [expires], attempt, [died], policy, key, last
	// error, content type, headers, body.
	later := now + 3_600_000
	set("m", queue+u64(1), join("\x02\x01", signed(later), signed(now), signed(later+60_000), "\x00", "\x08", u64(uint64(time.Minute)), "\x05later", "\x00\x00\x00", "one"))
	set("m", queue+u64(2), join("\x02\x00", signed(now), signed(now), "\x00", "\x00", "\x03due", "\x00\x00\x00", "two"))
	set("m", queue+u64(3), join("\x02\x00", signed(now), signed(now), "\x00", "\x00", "\x04held", "\x00\x00\x00", "three"))
	set("m", queue+u64(4), join("\x02\x02", signed(now), signed(now), "\x01", signed(now-1000), "\x00", "\x04dead", "\x03why", "\x00\x00", "four"))
	set("d", queue+at(later)+u64(1), "\x00\x00\x04\x00")
	set("d", queue+at(now)+u64(2), "\x00\x00\x04\x00")
	set("f", queue+at(later/60_000), u64(1))
	set("f", queue+at(now/60_000), u64(1))
	set("k", queue+"later", "\x02"+u64(1)+at(later))
	set("k", queue+"due", "\x00"+u64(2)+at(now))
	set("k", queue+"held", "\x00"+u64(3)+at(now))
	set("l", queue+u64(3), join("\x01", at(now+60_000), "0123456789abcdef", "\x01"))
	set("x", queue+at(now-1000)+u64(4), "")
	set("y", queue+"\x00\x04dead"+at(now-1000)+u64(4), "")
	set("c", queue, signed(2)+signed(1)+signed(1))
	set("w", queue, at(now)+u64(0))
	set("q", "q", queue)
	set("s", "", u64(1<<16))
	if err := b.Commit(pebble.Sync); err != nil {
		t.Fatal(err)
	}
	again := func() {
		t.Helper()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if e, err = Open("data", cfg); err != nil {
			t.Fatal(err)
		}
	}
	again()
	defer func() { _ = e.Close() }()
	sound(t, e.queue("q"))
	if _, revision, err := e.Settings(t.Context(), "q"); err != nil || revision != unwritten {
		t.Errorf("settings at %s, %v", revision, err)
	}
	for key, want := range map[string]engine.State{"later": engine.Scheduled, "due": engine.Ready, "held": engine.Leased, "dead": engine.Dead} {
		i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
		if err != nil || i.State != want || i.Remember != 0 || key == "later" && (i.ExpireAfter != time.Minute || string(i.Body) != "one") {
			t.Errorf("%s: %+v, %v", key, i, err)
		}
	}

	configure(t, e, engine.Settings{DeadMax: 1, InFlight: 2, Defaults: engine.Terms{Remember: time.Hour}})
	pushAll(t, e, []engine.Message{waiting("new", 0)})
	if g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 10, Remote: true}}); err != nil || len(g.Queues[0].Messages) != 1 || !g.Queues[0].Held {
		t.Fatalf("beside the one held: %+v, %v", g, err)
	} else if s, err := e.Settle(t.Context(), []engine.Settlement{{Token: g.Queues[0].Messages[0].Token, Do: engine.Bury}}); err != nil || s[0].Err != nil {
		t.Fatal(err, s)
	}
	if ackAll(t, e) != 1 {
		t.Error("the new one was not to be had")
	}
	if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "later"}}); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	for range 2 {
		sound(t, e.queue("q"))
		for key, want := range map[string]engine.State{"due": engine.Dead, "held": engine.Leased, "new": engine.Finished, "later": engine.Gone, "dead": engine.Gone} {
			i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
			if i.State != want || err != nil && !errors.Is(err, engine.ErrNotFound) {
				t.Errorf("%s: %+v, %v", key, i, err)
			}
		}
		again()
	}
}
