package wal

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// scratch makes a sector of a file unreadable until it is written.
func scratch(d *disktest.Disk, name string, at int64) {
	var written atomic.Bool
	d.Hook(func(c disktest.Call) error {
		if c.Name != name || c.Off >= at+512 || at >= c.Off+int64(c.Len) || written.Load() {
			return nil
		}
		written.Store(c.Op == disktest.Write)
		if c.Op == disktest.Read {
			return syscall.EIO
		}
		return nil
	})
}

// TestSectorsThatCannotBeRead makes each sector unreadable of a log that was killed: behind what is known to be
// durable it ends the log there and is told, elsewhere it is the error of the disk, and no damage.
func TestSectorsThatCannotBeRead(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	var items []item
	for i := range 22 { // the second segment has room behind the end
		items = append(items, add(t, l, 1, text(i, 3000)))
	}
	killed := d.Kill()
	must(t, l.Close())
	torn, failed := 0, 0
	for number := range uint64(4) {
		name := segmentName("/log", number+1)
		for at := int64(0); at < minSegment; at += 512 {
			if at >= 512 && at < headerSize {
				continue
			}
			d := killed.Kill()
			if f, err := d.Open(name); err != nil {
				break
			} else if size, err := f.Size(); errors.Join(err, f.Close()) != nil || size <= at {
				break
			}
			scratch(d, name, at)
			var told bytes.Buffer
			cfg.Logger = slog.New(slog.NewTextHandler(&told, nil))
			l, found, all, err := tryOpen(d, cfg, 0)
			if err != nil {
				if failed++; !errors.Is(err, syscall.EIO) || errors.Is(err, ErrDamaged) {
					t.Fatalf("%s, %d: %v", name, at, err)
				}
				continue
			}
			same(t, all, items[:len(all)])
			if len(all) < len(items)-2 || found.Torn == nil { // two end in the same page
				t.Fatalf("%s, %d: %d entries of %d, %+v", name, at, len(all), len(items), found)
			}
			if strings.Contains(told.String(), "level=WARN") {
				torn++
			} else if len(all) < len(items) {
				t.Fatalf("%s, %d: an entry was dropped and nothing told", name, at)
			}
			all = append(all, add(t, l, 2, []byte("behind"))) // and the sector is still there
			must(t, l.Close())
			l, again := open(t, d, cfg, 0)
			same(t, again, all)
			must(t, l.Close())
		}
	}
	if torn < 20 || failed < 100 {
		t.Errorf("%d sectors were torn, %d not read", torn, failed)
	}
}

// TestDiskThatFailsIsNoEnd: where much of the last segment cannot be read, nothing is dropped.
func TestDiskThatFailsIsNoEnd(t *testing.T) {
	d, cfg := newDisk(t), small()
	cfg.SegmentBytes = 512 << 10
	l, _ := open(t, d, cfg, 0)
	want := add(t, l, 1, []byte("durable"))
	killed := d.Kill()
	must(t, l.Close())
	killed.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && c.Off+int64(c.Len) > headerSize {
			return syscall.EIO
		}
		return nil
	})
	if _, _, _, err := closing(tryOpen(killed, cfg, 0)); !errors.Is(err, syscall.EIO) || errors.Is(err, ErrDamaged) {
		t.Errorf("opened: %v", err)
	}
	killed.Hook(nil)
	l, all := open(t, killed, cfg, 0)
	same(t, all, []item{want})
	must(t, l.Close())
}
