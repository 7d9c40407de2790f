package diskengine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestPagesReadWhatTheyShow lists a queue whose messages lie in many sstables, in both directions: each is
// on one page, and of each sstable little more is read than is shown of it.
func TestPagesReadWhatTheyShow(t *testing.T) {
	const runs, each, limit = 12, 400, 100
	d, clock := disktest.New(nil), enginetest.NewClock()
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 256 << 10, BlockBytes: 1 << 10, MergeTables: 100}}
	e := p.open(t)
	n := 0
	for range runs {
		var msgs []engine.Message
		for range each {
			// They lie among those of the other sstables, and many are due at the same time.
			msgs = append(msgs, message("q", fmt.Sprint(n), time.Hour+time.Duration(n*7919%(runs*each)/3)*time.Second))
			n++
		}
		if err := pushAll(t, e, msgs...); err != nil {
			t.Fatal(err)
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "5"}}); err != nil {
		t.Fatal(err)
	}
	i, err := e.Queue(t.Context(), "q")
	if err != nil {
		t.Fatal(err)
	}
	size := int64(enginetest.FigureOf(t, e, "disk_written_bytes", "sstable"))
	var read atomic.Int64
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") {
			read.Add(int64(c.Len))
		}
		return nil
	})
	for _, newest := range []bool{false, true} {
		read.Store(0)
		seen, pages := make(map[string]bool), 0
		var last engine.Info
		for q := (engine.ListQuery{Queue: "q", State: engine.Scheduled, Newest: newest, Limit: limit}); ; pages++ {
			page, err := e.List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Messages {
				if seen[m.Key] || last.ID != 0 && m.Due.Before(last.Due) != newest && !m.Due.Equal(last.Due) {
					t.Errorf("%s, due %v, comes behind %s, due %v, or twice", m.Key, m.Due, last.Key, last.Due)
				}
				seen[m.Key], last = true, m
			}
			if q.After = page.Next; page.Next == "" {
				break
			}
		}
		if len(seen) != int(i.Scheduled) || seen["5"] {
			t.Errorf("newest %v: %d are listed, %d are there", newest, len(seen), i.Scheduled)
		}
		t.Logf("newest %v: %d pages of %d read %d KiB of %d", newest, pages, limit, read.Load()>>10, size>>10)
		if read.Load() > 8*size {
			t.Errorf("newest %v: %d bytes were read of %d", newest, read.Load(), size)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPagesOfOneTime: of messages that are due at the same time, each is on one page, though the next page
// begins right after the last one's id.
func TestPagesOfOneTime(t *testing.T) {
	const n = 5
	clock := enginetest.NewClock()
	e := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t)
	for i := range n {
		must(t, pushAll(t, e, message("q", fmt.Sprint(i), time.Hour)))
	}
	must(t, e.Flush(t.Context()))
	for _, newest := range []bool{false, true} {
		seen := 0
		for q, more := (engine.ListQuery{Queue: "q", State: engine.Scheduled, Newest: newest, Limit: 2}), true; more; more = q.After != "" {
			page, err := e.List(t.Context(), q)
			must(t, err)
			seen, q.After = seen+len(page.Messages), page.Next
		}
		if seen != n {
			t.Errorf("%d of %d are listed, the latest first %v", seen, n, newest)
		}
	}
	must(t, e.Close())
}

// TestNextDueBehindWhatWent: the next due time is exact where only the time of a deleted entry, the first of
// a block, is in memory.
func TestNextDueBehindWhatWent(t *testing.T) {
	clock := enginetest.NewClock()
	e := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t)
	for _, key := range []string{"1", "2", "3"} {
		in, err := time.ParseDuration(key + "h")
		must(t, errors.Join(err, pushAll(t, e, message("q", key, in))))
	}
	must(t, e.Flush(t.Context()))
	errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "1"}})
	must(t, errors.Join(append(errs, err)...))
	if i, err := e.Queue(t.Context(), "q"); err != nil || !i.NextDue.Equal(clock.Now().Add(2*time.Hour)) {
		t.Errorf("%v, %v", i.NextDue, err)
	}
	must(t, e.Close())
}
