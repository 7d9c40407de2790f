package deletions

import (
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
)

// damaged reports whether an error tells of damage in a file, at a place it has.
func damaged(err error, name string, size int) bool {
	var damage *vfs.DamageError
	return errors.As(err, &damage) && errors.Is(err, ErrDamaged) && damage.File == name && damage.Offset >= 0 && damage.Offset <= int64(size) &&
		!strings.Contains(err.Error(), "\n")
}

// TestRot: each bit that changes, each byte that is missing and one that is too many is noticed,
// its file named, and nobody is dead by it.
func TestRot(t *testing.T) {
	d := newDisk(t, nil)
	tables := []*sstable.Table{newTable(t, d, 1, 200, 3, 5), newTable(t, d, 2, 10)}
	_, err := Write(d, dir, 9, store, tables, nil, nil)
	must(t, err)
	name := Name(dir, 9)
	whole := written(t, d, name)
	noticed := func(what string, i int) {
		t.Helper()
		again := reopened(t, d, tables)
		if err := Restore(d, dir, 9, store, again); !damaged(err, name, len(whole)+1) {
			t.Fatalf("%s %d: restored: %v", what, i, err)
		}
		if _, err := Verify(d, dir, 9, store, nil); !damaged(err, name, len(whole)+1) {
			t.Fatalf("%s %d: verified: %v", what, i, err)
		}
		for k, r := range again {
			if n := r.Count(0, r.Len()); n != int(r.Len()) && n != tables[k].Count(0, r.Len()) {
				t.Fatalf("%s %d: %d are alive in sstable %d", what, i, n, r.Number())
			}
		}
		closed(t, again)
	}
	for i := range whole {
		for bit := range 8 {
			d.Flip(name, int64(i), 1<<bit)
			noticed("flip in byte", i)
			d.Flip(name, int64(i), 1<<bit)
		}
		rewrite(t, d, name, whole[:i])
		noticed("cut at", i)
		rewrite(t, d, name, whole)
	}
	rewrite(t, d, name, append(whole[:len(whole):len(whole)], 0))
	noticed("longer at", len(whole))
	closed(t, tables)
}

// TestPassedOver: of deletion bitmaps that nobody asks for, damage does not keep the others from being read;
// Verify tells of it.
func TestPassedOver(t *testing.T) {
	d := newDisk(t, nil)
	tables := []*sstable.Table{newTable(t, d, 1, 200, 3, 5), newTable(t, d, 2, 10, 1)}
	_, err := Write(d, dir, 9, store, tables, nil, nil)
	must(t, err)
	d.Flip(Name(dir, 9), headerSize+2*rowSize+10, 1)
	again := reopened(t, d, tables)
	must(t, Restore(d, dir, 9, store, again[1:]))
	must(t, same(again[1], tables[1]))
	if _, err := Verify(d, dir, 9, store, nil); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "the deletion bitmap of sstable 1") {
		t.Errorf("verified: %v", err)
	}
	closed(t, again)
	closed(t, tables)
}

// TestOthersAreRefused: deletion bitmaps of another store, number, sstable, or of a newer release.
func TestOthersAreRefused(t *testing.T) {
	d := newDisk(t, nil)
	tables := []*sstable.Table{newTable(t, d, 1, 20, 3)}
	_, err := Write(d, dir, 9, store, tables, nil, nil)
	must(t, err)
	name := Name(dir, 9)
	whole := written(t, d, name)
	refused := func(what, reason string, err error) {
		t.Helper()
		if !damaged(err, name, len(whole)) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("another store", "of another store", Restore(d, dir, 9, store+1, tables))
	other := newTable(t, d, 2, 20)
	refused("another sstable", "sstable 2 is not in it", Restore(d, dir, 9, store, []*sstable.Table{other}))
	salted, err := sstable.Create(d, dir, 3, &sstable.Config{ID: store})
	must(t, err)
	must(t, salted.Add(sstable.Place{Queue: 1}, sstable.Key{}, nil))
	made, err := salted.Finish()
	must(t, err)
	forged := func(change func(b []byte)) {
		b := append([]byte(nil), whole...)
		change(b)
		le.PutUint32(b[44:], crc32.Checksum(b[headerSize:][:rowSize*int(le.Uint32(b[40:]))], castagnoli))
		le.PutUint32(b[12:], vfs.HeaderSum(b[:headerSize], 0))
		rewrite(t, d, name, b)
	}
	forged(func(b []byte) { le.PutUint64(b[headerSize:], 3) })
	refused("the deletion bitmaps of another sstable", "of another sstable 3", Restore(d, dir, 9, store, []*sstable.Table{made}))
	forged(func(b []byte) { b[headerSize+8] ^= 1 })
	refused("an sstable of the same number", "of another sstable 1", Restore(d, dir, 9, store, tables))
	forged(func(b []byte) { le.PutUint32(b[headerSize+12:], 21) })
	refused("another number of entries", "of another sstable 1", Restore(d, dir, 9, store, tables))
	forged(func(b []byte) { le.PutUint64(b[24:], 8) })
	refused("another number", "another number", Restore(d, dir, 9, store, tables))
	forged(func(b []byte) { b[60] = 1 })
	refused("no zeros", "must be zero", Restore(d, dir, 9, store, tables))
	forged(func(b []byte) { le.PutUint32(b[8:], version+1) })
	if err := Restore(d, dir, 9, store, tables); !errors.Is(err, vfs.ErrVersion) || errors.Is(err, ErrDamaged) {
		t.Errorf("another release: %v", err)
	}
	if _, err := Verify(d, dir, 9, store, nil); !errors.Is(err, vfs.ErrVersion) {
		t.Errorf("another release: %v", err)
	}
	closed(t, append(tables, other, made))
}

// FuzzRead changes a file anywhere, with checksums that match: nothing panics, and what is not
// damage are deletion bitmaps of the sstables.
func FuzzRead(f *testing.F) {
	d := newDisk(f, nil)
	tables := []*sstable.Table{newTable(f, d, 1, 200, 3, 5), newTable(f, d, 2, 10)}
	_, err := Write(d, dir, 9, store, tables, nil, nil)
	must(f, err)
	whole := written(f, d, Name(dir, 9))
	f.Add(uint16(32), []byte{255, 255, 255, 255, 255, 255, 255, 127}, uint16(0))
	f.Add(uint16(40), []byte{255, 255, 255, 255}, uint16(0))
	f.Add(uint16(40), []byte{0}, uint16(0))
	f.Add(uint16(headerSize), []byte{2}, uint16(0))
	f.Add(uint16(headerSize+16), []byte{255, 255, 255, 255}, uint16(0))
	f.Add(uint16(headerSize+16), []byte{0, 0, 0, 0}, uint16(0))
	f.Add(uint16(headerSize+2*rowSize+20), []byte{0, 255}, uint16(0))
	f.Add(uint16(0), []byte{}, uint16(5))
	f.Fuzz(func(t *testing.T, at uint16, patch []byte, cut uint16) {
		b := append([]byte(nil), whole[:len(whole)-int(cut)%len(whole)]...)
		if int(at) < len(b) {
			copy(b[at:], patch)
		}
		fix(b)
		d := d.Crash(vfstest.Everything())
		rewrite(t, d, Name(dir, 9), b)
		again := reopened(t, d, tables)
		held, err := Verify(d, dir, 9, store, nil)
		for _, err := range []error{err, Restore(d, dir, 9, store, again)} {
			if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, vfs.ErrVersion) {
				t.Fatal(err)
			}
		}
		if err == nil && len(held) > len(b)/rowSize {
			t.Fatalf("%d sstables in %d bytes", len(held), len(b))
		}
		closed(t, again)
		if d.Handles() > 0 {
			t.Fatalf("%d files are open", d.Handles())
		}
	})
}

// fix sets the checksums of a file as far as it has them.
func fix(b []byte) {
	if len(b) < headerSize {
		return
	}
	end := headerSize + rowSize*int64(le.Uint32(b[40:]))
	if end <= int64(len(b)) {
		at := end
		for row := b[headerSize:end]; len(row) > 0; row = row[rowSize:] {
			n := int64(le.Uint32(row[16:]))
			if at+n > int64(len(b)) {
				break
			}
			le.PutUint32(row[20:], crc32.Checksum(b[at:at+n], castagnoli))
			at += n
		}
		le.PutUint32(b[44:], crc32.Checksum(b[headerSize:end], castagnoli))
	}
	le.PutUint32(b[12:], vfs.HeaderSum(b[:headerSize], 0))
}
