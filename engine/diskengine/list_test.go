package diskengine

import (
	"errors"
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
