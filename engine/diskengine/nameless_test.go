package diskengine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// The log is cut off behind the position from which it is replayed, where the names of queues are told again:
// who opens the store is told, and does not get one in which whole queues are missing.
func TestNamesCutOff(t *testing.T) {
	d := disktest.New(nil)
	p := newPlace(d, nil)
	p.tune.SpanBytes, p.tune.MergeTables = 1<<30, 1000
	e := p.open(t)
	for i := range 30 {
		pushKeys(t, e, fmt.Sprint("k", i))
	}
	must(t, e.Flush(t.Context()))
	must(t, e.Close())
	const log = "/data/log/0000000000000001.log"
	written, refused := int64(len(strings.TrimRight(contentsOf(t, d, log), "\x00"))), 0
	for cut := int64(4096); cut <= written+64; cut += 8 {
		f := d.Kill()
		f.Cut(log, cut)
		e, err := diskengine.OpenOn(f, p.dir, &p.cfg, p.tune)
		var damage *vfs.DamageError
		if errors.As(err, &damage) {
			refused++
			continue
		}
		must(t, err)
		if has, _ := whatLives(t, e); len(has) < 30 {
			t.Fatalf("cut at %d: opened, and %d of 30 are there", cut, len(has))
		}
		must(t, e.Close())
	}
	if refused == 0 {
		t.Error("no store was refused")
	}
}
