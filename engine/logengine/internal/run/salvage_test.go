package run

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tarryhq/tarry/engine/logengine/internal/disk"
)

// TestSalvage flips a bit in each byte of a run: whoever knows how many entries it has is given all
// of them, as long as none of theirs changed, and is told of damage otherwise.
func TestSalvage(t *testing.T) {
	d, cfg := newDisk(t), small()
	all := things(rand.New(rand.NewPCG(17, 17)), 60)
	r := written(t, d, 1, cfg, all)
	size, end, queues := r.Bytes(), r.footer.part(kindData).end, r.Queues()
	r.KillRange(3, 20)
	dead, alive := r.AppendLive(nil)
	must(t, r.Close())
	for off := int64(0); off < size; off += 7 {
		d.Flip(r.name, off, 1<<(off%8))
		s, err := Salvage(d, "/runs", 1, cfg, uint32(len(all)))
		d.Flip(r.name, off, 1<<(off%8))
		if off < end {
			var damage *disk.DamageError
			if !errors.As(err, &damage) || damage.File != r.name {
				t.Fatalf("offset %d of %d: %v", off, end, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("offset %d of %d: %v", off, end, err)
		}
		if err := scanned(s.Scan(0, s.Len()), all, nil, 0, len(all), false); err != nil || !slices.Equal(s.Queues(), queues) {
			t.Fatalf("offset %d of %d: %v, %v", off, end, err, s.Queues())
		}
		_, err = s.RestoreLive(dead)
		must(t, err)
		if n := s.Count(0, s.Len()); n != alive {
			t.Fatalf("%d are alive, want %d", n, alive)
		}
		if _, ok, err := s.FindID(all[0].ID); ok || err != nil {
			t.Fatal("found by an index", err)
		}
		if _, ok, err := s.FindKey(keyOf(0)); ok || err != nil {
			t.Fatal("found by an index", err)
		}
		if err := s.Verify(nil); !errors.Is(err, ErrDamaged) {
			t.Fatalf("it is said to be whole: %v", err)
		}
		must(t, s.Close())
	}
	for _, n := range []uint32{uint32(len(all)) - 1, uint32(len(all)) + 1} {
		if _, err := Salvage(d, "/runs", 1, cfg, n); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d entries of %d: %v", n, len(all), err)
		}
	}
	if d.Handles() > 0 {
		t.Errorf("%d files are open", d.Handles())
	}
}
