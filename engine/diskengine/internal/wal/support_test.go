package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// small makes logs with small segments, whose salts are the same in each run.
func small() *Config {
	var salt atomic.Uint64
	return &Config{ID: 7, SegmentBytes: minSegment, Spares: 1, Keep: 2, RetryFor: -1,
		Logger: slog.New(slog.DiscardHandler), Salt: func() uint64 { return salt.Add(0x9e3779b97f4a7c15) }}
}

// item is an entry of a test, with its place.
type item struct {
	kind       byte
	bytes      []byte
	start, end Pos
}

func (i item) String() string {
	return fmt.Sprintf("%d:%.20q(%d)@%d-%d", i.kind, i.bytes, len(i.bytes), i.start, i.end)
}

func (i item) is(o item) bool {
	return i.kind == o.kind && bytes.Equal(i.bytes, o.bytes) && i.start == o.start && i.end == o.end
}

func newDisk(t testing.TB) *disktest.Disk {
	d := disktest.New(nil)
	must(t, vfs.MkdirAll(d, "/log"))
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tryOpen opens a log and returns what it holds.
func tryOpen(fs vfs.FS, cfg *Config, from Pos) (*Log, Found, []item, error) {
	var all []item
	l, found, err := Open(fs, "/log", cfg, from, func(e Entry) error {
		all = append(all, item{e.Kind, bytes.Clone(e.Bytes), e.Start, e.End})
		return nil
	})
	return l, found, all, err
}

func open(t testing.TB, fs vfs.FS, cfg *Config, from Pos) (*Log, []item) {
	t.Helper()
	l, found, all, err := tryOpen(fs, cfg, from)
	must(t, err)
	if found.Entries != int64(len(all)) {
		t.Fatalf("%d entries were given, %d found", len(all), found.Entries)
	}
	return l, all
}

// put appends an entry and does not wait for it.
func put(l *Log, kind byte, b []byte) (item, error) {
	end, err := l.Append(kind, b)
	n := len(appendEntryHead(nil, kind, len(b))) + len(b)
	return item{kind, b, end - Pos(n), end}, err
}

// add appends an entry durably.
func add(t testing.TB, l *Log, kind byte, b []byte) item {
	t.Helper()
	i, err := put(l, kind, b)
	must(t, err)
	must(t, l.Wait(t.Context(), i.end))
	return i
}

// text is n bytes that tell themselves apart from those of other numbers.
func text(number, n int) []byte {
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(number)<<32|uint64(i))
	}
	return b
}

func same(t testing.TB, got, want []item) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d:\n%.500v\n%.500v", len(got), len(want), got, want)
	}
	for i := range got {
		if !got[i].is(want[i]) {
			t.Fatalf("entry %d of %d is %v, want %v", i, len(want), got[i], want[i])
		}
	}
}

func files(t testing.TB, d vfs.FS) []string {
	t.Helper()
	names, err := d.List("/log")
	must(t, err)
	return names
}

var errTest = errors.New("of the test")

// onHeap is room for Prepare.
func onHeap(bytes int) ([]byte, func()) { return make([]byte, bytes), func() {} }
