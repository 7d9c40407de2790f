package diskengine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
)

// A process goes to another directory while it has a store open by a relative name, under which another store
// is there: each stays what it is.
func TestAnotherWorkingDirectory(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	other, err := diskengine.Open(filepath.Join(b, "data"), &diskengine.Config{Logger: quiet})
	must(t, err)
	pushKeys(t, other, "of-b")
	must(t, other.Close())
	t.Chdir(a)
	e, err := diskengine.Open("data", &diskengine.Config{Logger: quiet, BallastBytes: -1})
	must(t, err)
	for i := range 10 {
		pushKeys(t, e, fmt.Sprint("of-a-", i))
	}
	must(t, os.Chdir(b))
	must(t, e.Flush(t.Context()))
	pushKeys(t, e, "of-a-more")
	must(t, e.Close())
	for dir, keys := range map[string][]string{a: {"of-a-0", "of-a-9", "of-a-more"}, b: {"of-b"}} {
		dir = filepath.Join(dir, "data")
		rep, err := diskengine.Check(t.Context(), dir, nil)
		must(t, err)
		if !rep.Sound() {
			t.Errorf("%s is damaged: %v", dir, rep.Findings)
		}
		e, err := diskengine.Open(dir, &diskengine.Config{Logger: quiet})
		must(t, err)
		for _, key := range keys {
			if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key}); err != nil {
				t.Errorf("%s of %s: %v", key, dir, err)
			}
		}
		must(t, e.Close())
	}
}
