package diskengine_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestTooLittleSpaceRefusesPushesOnly has less space be free than is to be left: pushes are refused, what
// ends messages goes on, and once there is more so do pushes.
func TestTooLittleSpaceRefusesPushesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const least = 1 << 20
		d := disktest.New(nil)
		e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: least}, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t)
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		if err := pushAll(t, e, message("q", "a", 0), message("q", "b", 0)); err != nil {
			t.Fatal(err)
		}
		if err := e.Ready(t.Context()); err != nil {
			t.Errorf("not ready: %v", err)
		}
		d.SetSpace(d.Used() + least/2)
		time.Sleep(2 * time.Second)
		if err := e.Ready(t.Context()); !errors.Is(err, engine.ErrNoSpace) || !strings.Contains(err.Error(), "1 MiB are to be left free (min_free): free some space") {
			t.Errorf("ready: %v", err)
		}
		if err := pushAll(t, e, message("q", "c", 0)); !errors.Is(err, engine.ErrNoSpace) || !errors.Is(err, engine.ErrLimit) {
			t.Errorf("push: %v", err)
		}
		if _, err := e.PushAtomic(t.Context(), []engine.Message{message("q", "c", 0)}); !errors.Is(err, engine.ErrNoSpace) {
			t.Errorf("atomic push: %v", err)
		}
		settle(t, e, lease(t, e, "q", 1), engine.Ack)
		if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "b"}}); err != nil || errs[0] != nil {
			t.Errorf("cancel: %v, %v", errs, err)
		}
		d.SetSpace(0)
		time.Sleep(2 * time.Second)
		if err := pushAll(t, e, message("q", "c", 0)); err != nil {
			t.Errorf("push after space was freed: %v", err)
		}
	})
}

// TestTooLittleSpaceIsToldTwice has pushes be refused for want of space, again and again: whoever reads
// warnings alone hears when that begins and when it ends.
func TestTooLittleSpaceIsToldTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, log := disktest.New(nil), new(bytes.Buffer)
		warnings := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		e := place{d, "data", diskengine.Config{Logger: warnings, MinFreeBytes: 1 << 20}, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t)
		d.SetSpace(d.Used() + 1<<19)
		time.Sleep(2 * time.Second)
		for range 100 {
			if err := pushAll(t, e, message("q", "", 0)); !errors.Is(err, engine.ErrNoSpace) {
				t.Errorf("push: %v", err)
			}
			time.Sleep(time.Second)
		}
		d.SetSpace(0)
		time.Sleep(2 * time.Second)
		if err := pushAll(t, e, message("q", "", 0)); err != nil {
			t.Errorf("push after space was freed: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "pushes are refused") || !strings.Contains(lines[1], "pushes are accepted") {
			t.Errorf("the log says: %s", log)
		}
	})
}

// TestFullDiskOpenedAgain fills a disk up and opens the store again and again: as long as there is no room
// for the ballast that was given up no push is accepted, and what is there can be read and ended.
func TestFullDiskOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New(&disktest.Config{Space: 4 << 20})
		p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1, BallastBytes: 512 << 10, RetryFor: -1},
			diskengine.Tune{SegmentBytes: 64 << 10, SpanBytes: 256 << 10}}
		e := p.open(t)
		var kept []string
		for round := range 3 {
			some, err := fill(t, e, fmt.Sprint("q", round), 10_000, 0)
			if !errors.Is(err, engine.ErrNoSpace) {
				t.Fatalf("round %d, after %d: %v", round, len(some), err)
			}
			kept = append(kept, some...)
			if err := e.Close(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			e = p.open(t)
		}
		for _, key := range kept {
			queue, _, _ := strings.Cut(key, "-")
			if _, err := e.Get(t.Context(), engine.Ref{Queue: queue, Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		settle(t, e, lease(t, e, "q0", 50), engine.Ack)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
