package diskengine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestSealedAreFlushedTogether has memtables sealed while another is flushed: they become one sstable.
// Messages that are cancelled while they are written stay so, and the others are found, also once the
// store is opened again.
func TestSealedAreFlushedTogether(t *testing.T) {
	const each, memtables = 200, 3
	var e *diskengine.Engine
	var gone []engine.Ref
	filled, passes := 0, -1 // passes of those memtables
	fill := func() {
		for k := range each {
			m := message("q", fmt.Sprint(filled, "-", k), time.Hour+time.Duration(k)*time.Second)
			m.Body = noise(10_000)
			must(t, pushAll(t, e, m))
		}
		filled++
	}
	between := func(where string) {
		switch {
		case where != "pass":
		case filled <= memtables:
			fill()
		case passes >= 0:
			if passes++; passes != 5 {
				return
			}
			for i := range memtables {
				for k := 0; k < each; k += 10 {
					gone = append(gone, engine.Ref{Queue: "q", Key: fmt.Sprint(i+1, "-", k)})
				}
			}
			errs, err := e.Cancel(t.Context(), gone)
			must(t, errors.Join(append(errs, err)...))
		}
	}
	p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1},
		diskengine.Tune{MemtableBytes: 1 << 20, Still: true, Between: between}}
	e = p.open(t)
	fill()
	must(t, e.Flush(t.Context()))
	passes = 0
	if !e.Behind() || len(gone) > 0 {
		t.Fatal("nothing was sealed meanwhile")
	}
	must(t, e.Flush(t.Context()))
	if n := len(e.Tables()); n != 2 || len(gone) == 0 {
		t.Errorf("there are %d sstables, and %d messages were cancelled", n, len(gone))
	}
	for range 2 {
		i, err := e.Queue(t.Context(), "q")
		if want := (1+memtables)*each - len(gone); err != nil || i.Scheduled != int64(want) {
			t.Errorf("%d are scheduled, want %d: %v", i.Scheduled, want, err)
		}
		for _, ref := range gone {
			if _, err := e.Get(t.Context(), ref); !errors.Is(err, engine.ErrNotFound) {
				t.Errorf("%v was cancelled: %v", ref, err)
			}
		}
		for _, key := range []string{"0-5", "1-1", "3-199"} {
			_, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
			must(t, err)
		}
		must(t, e.Close())
		e = p.open(t)
	}
	must(t, e.Close())
}
