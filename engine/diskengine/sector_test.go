package diskengine_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// One run cannot be merged, since a sector of it has rotted or is not read any more: the others are.
func TestOthersAreMerged(t *testing.T) {
	for name, spoil := range map[string]func(d *disktest.Disk, run string){
		"checksum": func(d *disktest.Disk, run string) { d.Flip("data/runs/"+run, 100, 1) },
		"EIO": func(d *disktest.Disk, run string) {
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Read && strings.HasSuffix(c.Name, run) && c.Off < 512 && c.Off+int64(c.Len) > 64 {
					return syscall.EIO
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := disktest.New(nil)
				p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeRuns: 4, BlockBytes: 512}}
				e := p.open(t)
				for i := range 40 {
					for j := range 10 {
						must(t, pushAll(t, e, message("q", fmt.Sprint(i, "-", j), time.Hour)))
					}
					must(t, e.Flush(t.Context()))
					if i == 1 {
						names, err := d.List("data/runs")
						must(t, err)
						spoil(d, names[0])
					}
					time.Sleep(30 * time.Second) // in which merges go on, and are tried again
				}
				names, err := d.List("data/runs")
				must(t, err)
				if len(names) > 20 {
					t.Errorf("%d files, after %v merges", len(names), enginetest.FigureOf(t, e, "disk_merges", ""))
				}
				d.Hook(nil)
				must(t, e.Close())
			})
		})
	}
}
