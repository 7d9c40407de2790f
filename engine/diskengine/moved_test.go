package diskengine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestListAmidAFlush flushes between the two steps of a page, and writes a message down anew that keeps its
// place, which may be flushed too: all are on the page.
func TestListAmidAFlush(t *testing.T) {
	for _, flushes := range []bool{false, true} {
		for _, newest := range []bool{false, true} {
			t.Run(fmt.Sprintf("flushes %v, newest %v", flushes, newest), func(t *testing.T) {
				d := disktest.New(nil)
				p := newPlace(d, nil)
				p.tune.Still = true
				e := p.open(t)
				for i := range 20 {
					must(t, pushAll(t, e, message("q", fmt.Sprint("a", i), time.Hour)))
				}
				must(t, e.Flush(t.Context()))
				for i := range 20 {
					must(t, pushAll(t, e, message("q", fmt.Sprint("b", i), time.Hour)))
				}
				amid := false
				d.Hook(func(c disktest.Call) error {
					if amid || c.Op != disktest.Read || !strings.HasSuffix(c.Name, ".run") {
						return nil
					}
					amid = true
					for _, key := range []string{"a7", "b7"} {
						m := message("q", key, 0)
						m.OnConflict = engine.KeepDue
						must(t, pushAll(t, e, m))
					}
					if flushes {
						must(t, e.Flush(t.Context()))
					}
					return nil
				})
				page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Scheduled, Limit: 100, Newest: newest})
				d.Hook(nil)
				must(t, err)
				on := map[string]int{}
				for _, m := range page.Messages {
					on[m.Key]++
				}
				for _, s := range []string{"a", "b"} {
					for i := range 20 {
						if n := on[fmt.Sprint(s, i)]; n != 1 {
							t.Errorf("%s%d is there %d times", s, i, n)
						}
					}
				}
				if !amid || page.Next != "" {
					t.Errorf("amid %v, next %q", amid, page.Next)
				}
				must(t, e.Close())
			})
		}
	}
}
