package sstable

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// document is a value as many are.
func document(i int) []byte {
	return fmt.Appendf(nil, `{"order":%d,"state":"unpaid","customer":{"id":%d,"mail":"%x@example.com"}}`, i, i*7919, i*104729)
}

// An sstable has blocks of both kinds where it is said in the midst of it that they stand as they are.
func TestPlain(t *testing.T) {
	d, cfg := newDisk(t), small()
	asked := 0
	cfg.Hasty = func() bool { asked++; return asked%2 == 0 }
	all := make([]thing, 500)
	for i := range all {
		all[i] = thing{Place{1, int64(i) * 1000, uint64(i + 1)}, keyOf(i), document(i)}
	}
	r := written(t, d, 1, cfg, all)
	must(t, whole(r, all, nil))
	half := r.footer.part(kindData).end - HeaderSize
	must(t, r.Remove())
	cfg.Hasty = nil
	r = written(t, d, 2, cfg, all)
	if packed := r.footer.part(kindData).end - HeaderSize; asked < 4 || half < packed*5/4 {
		t.Errorf("asked %d times, %d bytes where half is packed, %d where all is", asked, half, packed)
	}
	must(t, r.Remove())
}

// TestHastySyncs: in haste a long value is synced an eighth as often, and written as without.
func TestHastySyncs(t *testing.T) {
	d, cfg := newDisk(t), small()
	syncs := 0
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Sync {
			syncs++
		}
		return nil
	})
	all := []thing{{Place{1, 1, 1}, keyOf(1), noise(100)}, {Place{1, 2, 2}, keyOf(2), noise(1 << 20)}, {Place{1, 3, 3}, keyOf(3), noise(3000)}}
	r := written(t, d, 1, cfg, all)
	must(t, errors.Join(whole(r, all, nil), r.Remove()))
	calm := syncs
	cfg.Hasty = func() bool { return true }
	syncs = 0
	r = written(t, d, 2, cfg, all)
	must(t, errors.Join(whole(r, all, nil), r.Remove()))
	if most := calm/8 + 3; calm < 50 || syncs > most {
		t.Errorf("%d syncs, in haste %d of at most %d", calm, syncs, most)
	}
}

// TestPacked writes what resembles itself, what does not, and what is too long to be packed: each
// is read as it was written.
func TestPacked(t *testing.T) {
	d, cfg := newDisk(t), small()
	cfg.BlockBytes = 0
	for name, c := range map[string]struct {
		value  func(i int) []byte
		n      int
		packed bool
		most   float64 // bytes of the blocks for one of values
	}{
		"documents": {document, 500, true, 0.5},
		"noise":     {func(int) []byte { return noise(100) }, 500, false, 1.1},
		"digits":    {func(int) []byte { return fmt.Appendf(nil, "%x", noise(100)) }, 500, true, 0.7},
		"long":      {func(int) []byte { return bytes.Repeat([]byte("long"), maxPacked/8) }, 3, true, 0.01},
		"too long":  {func(int) []byte { return bytes.Repeat([]byte("long"), maxPacked/4) }, 3, false, 1.01},
	} {
		all, bytes := make([]thing, c.n), 0
		for i := range all {
			all[i] = thing{Place{1, int64(i) * 1000, uint64(i*7919) % 10007}, keyOf(i), c.value(i)}
			bytes += len(all[i].value)
		}
		r := written(t, d, 1, cfg, all)
		must(t, whole(r, all, nil))
		if got := float64(r.footer.part(kindData).end-HeaderSize) / float64(bytes); got > c.most {
			t.Errorf("%s: %.2f bytes for one", name, got)
		}
		var head [blockHead]byte
		must(t, r.readAt(head[:], HeaderSize))
		if (head[9] == packed) != c.packed {
			t.Errorf("%s: the first block has coding %d", name, head[9])
		}
		must(t, r.Remove())
	}
}

// TestBombs unpacks what says that it is long, or is: it is refused before memory is taken.
func TestBombs(t *testing.T) {
	w, err := zstd.NewWriter(nil)
	must(t, err)
	const large = 8 << 20
	long := w.EncodeAll(make([]byte, large), nil)
	streamed := new(bytes.Buffer) // does not say how long it is
	w.Reset(streamed)
	_, err = w.Write(make([]byte, large))
	must(t, errors.Join(err, w.Close()))
	short := w.EncodeAll([]byte("short"), nil)
	for name, c := range map[string]struct {
		says uint32
		b    []byte
	}{
		"says 4 GB":          {math.MaxUint32, short},
		"says a byte more":   {maxPacked + 1, short},
		"is longer":          {maxPacked, long},
		"is far longer":      {10, long},
		"is longer, unsaid":  {maxPacked, streamed.Bytes()},
		"is shorter":         {6, short},
		"is a byte longer":   {4, short},
		"is none":            {5, []byte("short")},
		"is cut":             {5, short[:len(short)-2]},
		"has a large window": {5, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xff, 0x29, 0, 0, 's', 'h', 'o', 'r', 't'}},
	} {
		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		payload, reason := unpack(append(le.AppendUint32(nil, c.says), c.b...), new(buffer))
		runtime.ReadMemStats(&is)
		if reason == "" {
			t.Errorf("%s: it is %q", name, payload)
		}
		if n := is.TotalAlloc - was.TotalAlloc; n > 16*maxPacked {
			t.Errorf("%s: takes %d bytes", name, n)
		}
	}
	if payload, reason := unpack(append(le.AppendUint32(nil, 5), short...), new(buffer)); reason != "" || string(payload) != "short" {
		t.Errorf("%q, %s", payload, reason)
	}
}

// FuzzEntries reads anything as a block of entries, packed and not: it is refused, or all in it can
// be read.
func FuzzEntries(f *testing.F) {
	var c columns
	var values []byte
	for i, x := range things(rand.New(rand.NewPCG(15, 15)), 30) {
		c.add(x.Place, len(x.value))
		values = append(values, x.value...)
		payload := append(c.append(nil), values...)
		f.Add(payload, i+1, false)
		b, _ := pack(nil, payload)
		f.Add(b, i+1, true)
	}
	f.Fuzz(func(t *testing.T, payload []byte, count int, isPacked bool) {
		var buf buffer
		if isPacked {
			var reason string
			if payload, reason = unpack(payload, &buf); reason != "" {
				return
			}
		}
		b, ok := decodeEntries(payload, count, &buf)
		if !ok {
			return
		}
		n := 0
		for i := range count {
			n += len(b.entry(i).Value)
		}
		if n != len(b.values) || n+count*leastHead > len(payload) {
			t.Errorf("%d entries have %d of %d bytes of values, of %d", count, n, len(b.values), len(payload))
		}
	})
}

// TestColumns writes places that lie as far apart as can be.
func TestColumns(t *testing.T) {
	all := []Place{{0, math.MinInt64, math.MaxUint64}, {0, math.MaxInt64, 0}, {0, math.MaxInt64, 1}, {5, -1, 1 << 63}, {math.MaxUint32, math.MinInt64, 7}}
	var c columns
	for i, p := range all {
		was := c.size()
		if c.add(p, i); c.size()-was > mostHead || c.size()-was < leastHead {
			t.Errorf("%v takes %d bytes", p, c.size()-was)
		}
	}
	b, ok := decodeEntries(append(c.append(nil), make([]byte, 10)...), len(all), new(buffer))
	if !ok {
		t.Fatal("it cannot be read")
	}
	for i, p := range all {
		if e := b.entry(i); e.Place != p || len(e.Value) != i {
			t.Errorf("%v is %v with %d bytes", p, e.Place, len(e.Value))
		}
	}
	for n := range c.size() { // cut anywhere
		if _, ok := decodeEntries(c.append(nil)[:n], len(all), new(buffer)); ok {
			t.Errorf("%d bytes of %d are taken", n, c.size())
		}
	}
}

// TestBubbles packs and unpacks in one bubble after another.
func TestBubbles(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			text := bytes.Repeat([]byte("text"), 100)
			b, ok := pack(nil, text)
			if payload, reason := unpack(b, new(buffer)); !ok || reason != "" || !bytes.Equal(payload, text) {
				t.Errorf("%q, %s", payload, reason)
			}
		})
	}
}
