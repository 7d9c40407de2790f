package run

import (
	"errors"

	"github.com/tarryhq/tarry/engine/logengine/internal/disk"
)

// Salvage opens a run by its header and its entries alone, of which there have to be as many as
// told: for one whose indexes, filters, tables or footer cannot be read. It reads all entries.
// What comes of it can be scanned, and told who is dead; nobody is found in it by key or id.
// A block of entries that cannot be read is a *disk.DamageError.
func Salvage(fs disk.FS, dir string, number uint64, cfg *Config, entries uint32) (*Run, error) {
	d := cfg.withDefaults()
	r := &Run{fs: fs, name: Name(dir, number), number: number}
	file, err := fs.Open(r.name)
	if err != nil {
		return nil, err
	}
	r.file = file
	r.refs.Store(1)
	if err := r.salvage(d.ID, entries); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return r, nil
}

func (r *Run) salvage(store uint64, entries uint32) error {
	size, err := r.file.Size()
	if err != nil {
		return err
	}
	if err := r.loadHeader(size, store); err != nil {
		return err
	}
	r.keys, r.ids = index{layout: r.footer.layout(kindKeys), kind: kindKeys}, index{layout: r.footer.layout(kindIDs), kind: kindIDs}
	off, n, last := int64(headerSize), uint32(0), Place{}
	var head [blockHead]byte
	var buf buffer
	for n < entries {
		if err := r.readAt(head[:], off); err != nil {
			return err
		}
		length := blockHead + int64(le.Uint32(head[4:]))
		if length > size-off {
			return r.damage(off, "a block that is too long")
		}
		b, err := r.dataBlock(off, int(length), &buf)
		if err != nil {
			return err
		}
		if uint64(b.count) > uint64(entries-n) {
			return r.damage(off, otherEntries)
		}
		r.blocks = append(r.blocks, blockRef{off: off, first: n, Place: b.place(0)})
		for i := range b.count {
			p := b.place(i)
			if n > 0 && p.Compare(last) < 0 {
				return r.damage(off, "entries out of order")
			}
			r.queues = addPlace(r.queues, p, n)
			last = p
			n++
		}
		off += length
	}
	r.footer = footer{entries: uint64(n)}
	*r.footer.part(kindData) = extent{headerSize, off}
	r.Live = newLive(n)
	return nil
}

// addPlace counts the entry at a position, which comes behind those before.
func addPlace(queues []Queue, p Place, pos uint32) []Queue {
	if k := len(queues); k == 0 || queues[k-1].Queue != p.Queue {
		queues = append(queues, Queue{Queue: p.Queue, From: pos, MinAt: p.At})
	}
	q := &queues[len(queues)-1]
	q.To, q.MaxAt = pos+1, p.At
	return queues
}
