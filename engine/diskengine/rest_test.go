package diskengine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// restSpan is by how much the log grows here until a memtable is sealed.
const restSpan = 256 << 10

// restful opens an engine in a bubble of package synctest.
func restful(t *testing.T) (e *diskengine.Engine, is func(name string) int) {
	e = place{disktest.New(nil), "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, SpanBytes: restSpan}}.open(t)
	t.Cleanup(func() { _ = e.Close() })
	return e, func(name string) int {
		t.Helper()
		return int(enginetest.FigureOf(t, e, name, ""))
	}
}

// A memtable of what is due soon is not written for a minute, one of what is due later at once.
func TestWindowOfWhatIsDueSoonRests(t *testing.T) {
	for name, c := range map[string]struct {
		in      time.Duration
		flushes int // within the minute
	}{"soon": {30 * time.Second, 0}, "later": {time.Hour, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, is := restful(t)
				if _, err := fill(t, e, "q", restSpan/1000, c.in); err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Second)
				if n := is("disk_flushes"); n != c.flushes {
					t.Errorf("%d memtables were written within a minute, want %d", n, c.flushes)
				}
				if n := is("disk_sealed_memtables"); n != 1-c.flushes {
					t.Errorf("%d memtables are sealed, want %d", n, 1-c.flushes)
				}
				time.Sleep(20 * time.Second)
				if n := is("disk_flushes"); n != 1 {
					t.Errorf("%d memtables were written in more than a minute, want 1", n)
				}
			})
		})
	}
}

// While a memtable rests the log does not grow to more than twice what it may otherwise, though
// nobody handles what is due.
func TestRestBoundsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, is := restful(t)
		most, rested := 0, 0
		for i := range 60 {
			if _, err := fill(t, e, fmt.Sprint("q", i), 50, 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			rested += is("disk_sealed_memtables")
			most = max(most, is("disk_log_bytes"))
		}
		if rested == 0 {
			t.Error("no memtable rested")
		}
		if most > 2*restSpan+restSpan/2 {
			t.Errorf("the log has grown to %d bytes", most)
		}
	})
}
