package sstable

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestFlippedBits flips a bit in each byte of an sstable: that is noticed and named by who reads
// all, unless the byte is padding, and nobody is ever given anything else than what was
// written.
func TestFlippedBits(t *testing.T) {
	d, cfg := newDisk(t), small()
	all := things(rand.New(rand.NewPCG(9, 9)), 14)
	r := written(t, d, 1, cfg, all)
	size, f := r.Bytes(), r.footer
	must(t, r.Close())
	padding := func(off int64) bool {
		for kind := byte(kindData); kind < sections; kind++ {
			if off >= f.part(kind).end && off < f.part(kind+1).off {
				return true
			}
		}
		return false
	}
	noticed, harmless := 0, 0
	for off := int64(0); off < size; off++ {
		if padding(off) && off%97 != 0 {
			continue
		}
		bit := byte(1) << (off % 8)
		d.Flip(Name("/runs", 1), off, bit)
		err := readAll(t, d, cfg, all)
		d.Flip(Name("/runs", 1), off, bit)
		var damage *vfs.DamageError
		switch {
		case err == nil && padding(off):
			harmless++
		case !errors.As(err, &damage) || damage.File != r.name || damage.Offset < 0 || damage.Offset > size:
			t.Fatalf("byte %d of %d: %v", off, size, err)
		default:
			noticed++
		}
	}
	if noticed == 0 || harmless == 0 {
		t.Errorf("%d were noticed, %d harmless", noticed, harmless)
	}
	must(t, readAll(t, d, cfg, all))
}

// readAll opens an sstable, compares all it gives, and returns the damage that it told of.
func readAll(t *testing.T, d *disktest.Disk, cfg *Config, all []thing) error {
	t.Helper()
	r, err := Open(d, "/runs", 1, cfg)
	if err != nil {
		return err
	}
	defer r.Close()
	for i, x := range all {
		if e, err := r.Get(uint32(i)); err == nil && (e.Place != x.Place || string(e.Value) != string(x.value)) {
			t.Fatalf("entry %d is %v", i, e)
		} else if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		if pos, ok, err := r.FindID(x.ID); err == nil && (!ok || int(pos) != i) {
			t.Fatalf("id of %d: %d, %v", i, pos, ok)
		}
		if pos, ok, err := r.FindKey(x.key); x.key != (Key{}) && err == nil && (!ok || int(pos) != i) {
			t.Fatalf("key of %d: %d, %v", i, pos, ok)
		}
		if pos, err := search(r, x.Place); err == nil && int(pos) != i {
			t.Fatalf("place of %d: %d", i, pos)
		}
	}
	return r.Verify(nil)
}

// TestLostSectors lets each sector of an sstable be zeros, and cuts the file at each.
func TestLostSectors(t *testing.T) {
	d, cfg := newDisk(t), small()
	all := things(rand.New(rand.NewPCG(10, 10)), 60)
	r := written(t, d, 1, cfg, all)
	size := r.Bytes()
	must(t, r.Close())
	for off := int64(0); off < size; off += 512 {
		lost := d.Kill()
		lost.Zero(r.name, off, min(512, size-off))
		if err := readAll(t, lost, cfg, all); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("without the sector at %d: %v", off, err)
		}
		cut := d.Kill()
		cut.Cut(r.name, off)
		if err := readAll(t, cut, cfg, all); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at %d: %v", off, err)
		}
	}
}

// TestOthersAreRefused opens what is of another store, number or version.
func TestOthersAreRefused(t *testing.T) {
	d, cfg := newDisk(t), small()
	r := written(t, d, 1, cfg, things(rand.New(rand.NewPCG(11, 11)), 20))
	must(t, r.Close())
	if _, err := Open(d, "/runs", 1, &Config{ID: 8}); !errors.Is(err, ErrDamaged) {
		t.Errorf("of another store: %v", err)
	}
	must(t, d.Link(Name("/runs", 1), Name("/runs", 2)))
	if _, err := Open(d, "/runs", 2, cfg); !errors.Is(err, ErrDamaged) {
		t.Errorf("with another number: %v", err)
	}
	for _, v := range []uint32{version + 1, version - 1} {
		number := uint64(10 + v)
		h := (&header{store: 7, number: number}).encode()
		vfs.SealHeader(h, magic, v, 0)
		f, err := d.Create(Name("/runs", number))
		must(t, err)
		_, err = f.WriteAt(h, 0)
		must(t, errors.Join(err, f.Close()))
		if _, err := Open(d, "/runs", number, cfg); !errors.Is(err, vfs.ErrVersion) {
			t.Errorf("of version %d: %v", v, err)
		}
	}
	if d.Handles() > 0 {
		t.Errorf("%d files are open", d.Handles())
	}
}

// fix sets the checksum of a block, so that what is wrong in it is looked at.
func fix(seed uint32, off int64, b []byte) {
	le.PutUint32(b, sum(seed, off, b[4:]))
}

// FuzzOpen changes an sstable anywhere, with checksums that match: it is never a crash, whatever
// is asked.
func FuzzOpen(f *testing.F) {
	d, cfg := newDisk(f), small()
	r := written(f, d, 1, cfg, things(rand.New(rand.NewPCG(12, 12)), 40))
	sound := make([]byte, r.Bytes())
	must(f, r.readAt(sound, 0))
	seed, foot := r.seed, r.footer
	must(f, r.Close())
	blocks := []int64{r.blocks[0].off, r.blocks[len(r.blocks)-1].off, int64(len(sound)) - footerSize}
	for kind := byte(kindKeys); kind <= sections; kind++ {
		blocks = append(blocks, foot.part(kind).off)
	}
	for i := range blocks {
		f.Add(uint8(i), uint16(4), []byte{255, 255, 255, 255})
		f.Add(uint8(i), uint16(12), []byte{0, 0, 0, 0})
		f.Add(uint8(i), uint16(16), []byte{255, 255, 255, 255, 255, 255, 255, 127})
		f.Add(uint8(i), uint16(24), []byte{0, 0, 0, 128})
		f.Add(uint8(i), uint16(32), []byte{0, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, which uint8, at uint16, patch []byte) {
		b := append([]byte(nil), sound...)
		off := blocks[int(which)%len(blocks)]
		length := blockHead + int(le.Uint32(b[off+4:]))
		block := b[off:][:length]
		if int(at) < len(block) {
			copy(block[at:], patch)
		}
		fix(seed, off, block)
		d := newDisk(t)
		file, err := d.Create(Name("/runs", 1))
		must(t, err)
		_, err = file.WriteAt(b, 0)
		must(t, errors.Join(err, file.Close()))
		r, err := Open(d, "/runs", 1, cfg)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		defer r.Close()
		for i := range r.Len() {
			_, err := r.Get(i)
			_, _, errKey := r.FindKey(keyOf(int(i)))
			_, _, errID := r.FindID(uint64(i)*3 + 10)
			_, errSearch := search(r, Place{uint32(i % 16), int64(i % 13), uint64(i)})
			for _, err := range []error{err, errKey, errID, errSearch} {
				if err != nil && !errors.Is(err, ErrDamaged) {
					t.Fatal(err)
				}
			}
		}
		if err := r.Verify(nil); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		if m, err := Merge(d, "/runs", 2, cfg, []*Table{r}); err == nil {
			must(t, m.Run.Close())
		} else if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrOrder) {
			t.Fatal(err)
		}
	})
}

// TestMisplacedBlocks puts a sound block where another of its kind and length belongs.
func TestMisplacedBlocks(t *testing.T) {
	d, cfg := newDisk(t), small()
	r := written(t, d, 1, cfg, things(rand.New(rand.NewPCG(13, 13)), 4000))
	other := written(t, d, 2, cfg, things(rand.New(rand.NewPCG(13, 13)), 4000))
	if len(r.keys.firsts) < 3 || len(r.ids.firsts) < 3 {
		t.Fatal("too few blocks")
	}
	for _, from := range []*Table{r, other} {
		for _, x := range []*index{&r.keys, &r.ids} {
			var right, wrong [indexBlock]byte
			must(t, r.readAt(right[:], x.off))
			must(t, from.readAt(wrong[:], x.off+map[bool]int64{true: indexBlock}[from == r]))
			_, err := r.file.WriteAt(wrong[:], x.off)
			must(t, err)
			if _, err := r.indexBlock(x, 0, wrong[:]); !errors.Is(err, ErrDamaged) {
				t.Errorf("kind %d: %v", x.kind, err)
			}
			_, err = r.file.WriteAt(right[:], x.off)
			must(t, err)
		}
	}
	must(t, r.Verify(nil))
	must(t, errors.Join(r.Close(), other.Close()))
}

// TestVerifyComparesTheParts forges blocks whose checksums match.
func TestVerifyComparesTheParts(t *testing.T) {
	d, cfg := newDisk(t), small()
	all := things(rand.New(rand.NewPCG(14, 14)), 50)
	for i := range all {
		all[i].value = noise(20) // which is not packed
	}
	r := written(t, d, 1, cfg, all)
	must(t, r.Verify(nil))
	forge := func(name, reason string, off int64, length int, change func(b []byte)) {
		was := make([]byte, length)
		must(t, r.readAt(was, off))
		b := append([]byte(nil), was...)
		change(b[blockHead:])
		fix(r.seed, off, b)
		_, err := r.file.WriteAt(b, off)
		must(t, err)
		var damage *vfs.DamageError
		if err := r.Verify(nil); !errors.As(err, &damage) || damage.Reason != reason {
			t.Errorf("%s: %v", name, err)
		}
		_, err = r.file.WriteAt(was, off)
		must(t, err)
	}
	for _, x := range []*index{&r.keys, &r.ids} {
		length := int(x.indexLen(x.items))
		forge("two lead to one", "an index leads to an entry twice", x.off, length, func(b []byte) {
			copy(b[x.width-x.pos:x.width], b[2*x.width-x.pos:])
		})
		forge("out of order", "an index out of order", x.off, length, func(b []byte) {
			copy(b[2*x.width:], b[:x.width-x.pos])
		})
		forge("another first", "a block of an index begins otherwise than its table says", x.off, length, func(b []byte) { b[x.hi-1]-- })
	}
	forge("exchanged", "ids that lead to other entries than those that have them", r.ids.off, int(r.ids.indexLen(r.ids.items)), func(b []byte) {
		w, n := r.ids.width, r.ids.pos
		pos := bytes.Clone(b[w-n : w])
		copy(b[w-n:w], b[2*w-n:])
		copy(b[2*w-n:], pos)
	})
	at, length := r.blocks[0].off, int(r.blockEnd(0)-r.blocks[0].off)
	heads := func(n int) (c columns) { // of the first block, without those of the last n entries
		for _, x := range all[:int(r.blocks[1].first)-n] {
			c.add(x.Place, len(x.value))
		}
		return c
	}
	whole, short := heads(0), heads(1)
	times := len(whole.lengths) + len(whole.queues)
	ids := times + len(whole.times)
	forge("an entry out of order", "entries out of order", at, length, func(b []byte) { b[times+len(short.times)] |= 1 })
	forge("another id", "ids that lead to other entries than those that have them", at, length, func(b []byte) { b[ids+len(short.ids)] ^= 2 })
	for _, wrong := range []func(*Queue){func(q *Queue) { q.Queue++ }, func(q *Queue) { q.MinAt-- }, func(q *Queue) { q.MaxAt++ }} {
		was := r.queues[1]
		wrong(&r.queues[1])
		if err := r.Verify(nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("queue %+v: %v", r.queues[1], err)
		}
		r.queues[1] = was
	}
	must(t, r.Verify(nil))
	must(t, r.Close())
}
