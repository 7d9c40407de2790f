package diskengine_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// One sstable cannot be merged, since a sector of it has rotted or is not read any more: the others are.
func TestOthersAreMerged(t *testing.T) {
	for name, spoil := range map[string]func(d *disktest.Disk, table string){
		"checksum": func(d *disktest.Disk, table string) { d.Flip("data/runs/"+table, 100, 1) },
		"EIO": func(d *disktest.Disk, table string) {
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Read && strings.HasSuffix(c.Name, table) && c.Off < 512 && c.Off+int64(c.Len) > 64 {
					return syscall.EIO
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := disktest.New(nil)
				p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeTables: 4, BlockBytes: 512}}
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

// The disk cannot read an sstable once, when it is merged. Once nearly all in it are gone it is merged after all.
func TestReadAgainIsMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		d := disktest.New(nil)
		p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeTables: 4, BlockBytes: 512}}
		e := p.open(t)
		for i := range n {
			m := message("q", fmt.Sprint(i), 1000*time.Hour)
			m.Body = noise(1000)
			must(t, pushAll(t, e, m))
		}
		must(t, e.Flush(t.Context()))
		names, err := d.List("data/runs")
		must(t, err)
		var gone []engine.Ref
		for i := range n - 1 {
			gone = append(gone, engine.Ref{Queue: "q", Key: fmt.Sprint(i)})
		}
		_, err = e.Cancel(t.Context(), gone[:n/2])
		must(t, err)
		var failed atomic.Bool
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Read && strings.HasSuffix(c.Name, names[0]) && failed.CompareAndSwap(false, true) {
				return syscall.EIO
			}
			return nil
		})
		pushKeys(t, e, "beside")
		must(t, e.Flush(t.Context()))
		time.Sleep(time.Minute)
		if !failed.Load() {
			t.Error("it was not read")
		}
		_, err = e.Cancel(t.Context(), gone[n/2:])
		must(t, err)
		for i := range 3 {
			pushKeys(t, e, fmt.Sprint("more-", i))
			must(t, e.Flush(t.Context()))
			time.Sleep(time.Hour)
		}
		now, err := d.List("data/runs")
		must(t, err)
		if slices.Contains(now, names[0]) {
			t.Errorf("%s stays, with 1 of %d messages", names[0], n)
		}
		must(t, e.Close())
	})
}
