package sstable

import (
	"errors"
	"fmt"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Writer writes an sstable. It needs 48 bytes of memory for each entry until Finish. After an
// error only Abort may be called.
type Writer struct {
	fs     vfs.FS
	dir    string
	number uint64
	cfg    Config
	out    out
	err    error // why nothing more can be written

	heads        columns // of the block that is being filled
	values       []byte
	count        int
	whole        []byte   // buffer of its payload
	packed       []byte   // buffer of the packed payload
	parts        [][]byte // buffer of the parts of a long payload
	blocks       []blockRef
	lengths      []uint32 // of the blocks
	queues       []Queue
	minID, maxID uint64
	n            uint32
	last         Place

	keys, ids []item
}

// Create begins an sstable. If there is one with the number it returns an fs.ErrExist.
func Create(fs vfs.FS, dir string, number uint64, cfg *Config) (*Writer, error) {
	w := &Writer{fs: fs, dir: dir, number: number, cfg: cfg.withDefaults()}
	file, err := fs.Create(Name(dir, number))
	if err != nil {
		return nil, err
	}
	h := header{store: w.cfg.ID, number: number, salt: w.cfg.Salt()}
	b := append(make([]byte, 0, w.cfg.slice), h.encode()...)
	w.out = out{file: file, cfg: &w.cfg, seed: h.crc, buf: b, off: HeaderSize}
	return w, nil
}

// Add writes the next entry, which must not come before the last one, with its key or the zero
// Key. Its value is all parts together. Add keeps none of them.
func (w *Writer) Add(p Place, key Key, parts ...[]byte) error {
	pos, err := w.add(p, parts...)
	if err != nil {
		return err
	}
	if key != (Key{}) {
		hi, lo := key.halves()
		w.keys = append(w.keys, item{hi: hi, lo: lo, pos: pos})
	}
	w.ids = append(w.ids, item{hi: p.ID, pos: pos})
	return nil
}

// add writes an entry and does not index it.
func (w *Writer) add(p Place, parts ...[]byte) (pos uint32, err error) {
	long := 0
	for _, b := range parts {
		long += len(b)
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case long > MaxValue:
		return 0, fmt.Errorf("%w: %d bytes of at most %d", ErrTooLong, long, MaxValue)
	case w.n == MaxEntries:
		return 0, ErrFull
	case w.n > 0 && p.Compare(w.last) < 0:
		return 0, fmt.Errorf("%w: %v comes after %v", ErrOrder, p, w.last)
	}
	room := w.cfg.BlockBytes - blockHead
	if w.count > 0 && w.heads.size()+len(w.values)+mostHead+long > room {
		if w.err = w.endBlock(w.values); w.err != nil {
			return 0, w.err
		}
	}
	if w.count == 0 {
		w.blocks = append(w.blocks, blockRef{off: w.out.off, first: w.n, Place: p})
	}
	w.heads.add(p, long)
	w.count++
	w.seen(p)
	if mostHead+long > room { // it has a block of its own
		w.err = w.endBlock(parts...)
		return w.n - 1, w.err
	}
	for _, b := range parts {
		w.values = append(w.values, b...)
	}
	return w.n - 1, w.err
}

// seen counts an entry.
func (w *Writer) seen(p Place) {
	w.queues = addPlace(w.queues, p, w.n)
	if w.n == 0 {
		w.minID = p.ID
	}
	w.minID, w.maxID = min(w.minID, p.ID), max(w.maxID, p.ID)
	w.last = p
	w.n++
}

func (w *Writer) endBlock(values ...[]byte) error {
	if w.count == 0 {
		return nil
	}
	long := 0
	for _, b := range values {
		long += len(b)
	}
	err := w.writeBlock(long, values...)
	w.lengths = append(w.lengths, uint32(w.out.off-w.blocks[len(w.blocks)-1].off))
	w.heads.reset()
	w.values, w.count = w.values[:0], 0
	return err
}

// writeBlock writes a block, packed if that is worth it. Values that are too long to be packed
// are not copied.
func (w *Writer) writeBlock(long int, values ...[]byte) error {
	w.whole = w.heads.append(w.whole[:0])
	if len(w.whole)+long > maxPacked {
		w.parts = append(append(w.parts[:0], w.whole), values...)
		defer clear(w.parts)
		return w.out.block(kindData, plain, w.count, w.parts...)
	}
	for _, b := range values {
		w.whole = append(w.whole, b...)
	}
	if !w.cfg.Hasty() {
		var ok bool
		if w.packed, ok = pack(w.packed, w.whole); ok {
			return w.out.block(kindData, packed, w.count, w.packed)
		}
	}
	return w.out.block(kindData, plain, w.count, w.whole)
}

// Finish writes the indexes, makes the sstable durable, and opens it.
func (w *Writer) Finish() (*Table, error) {
	return w.finish(newFilter(len(w.keys)), []stream{sorted(w.keys)}, []stream{sorted(w.ids)})
}

func (w *Writer) finish(f filter, keys, ids []stream) (*Table, error) {
	if w.err != nil {
		return nil, w.err
	}
	if w.err = w.complete(f, keys, ids); w.err != nil {
		return nil, w.err
	}
	if err := w.out.file.Close(); err != nil {
		w.err = err
		return nil, err
	}
	w.out.file = nil
	if w.err = w.fs.SyncDir(w.dir); w.err != nil {
		return nil, w.err
	}
	r, err := open(w.fs, w.dir, w.number, &w.cfg, f)
	if w.err = err; err == nil {
		w.err = ErrDone
		w.fs = nil
	}
	return r, err
}

// complete writes all that follows the entries.
func (w *Writer) complete(lets filter, keys, ids []stream) (err error) {
	f := footer{entries: uint64(w.n), minID: w.minID, maxID: w.maxID}
	if err = w.endBlock(w.values); err != nil {
		return err
	}
	*f.part(kindData) = extent{HeaderSize, w.out.off}
	kx := indexWriter{layout: f.layout(kindKeys), out: &w.out, kind: kindKeys, filter: lets}
	if *f.part(kindKeys), err = kx.write(keys); err != nil {
		return err
	}
	f.keys = kx.items
	ix := indexWriter{layout: f.layout(kindIDs), out: &w.out, kind: kindIDs}
	if *f.part(kindIDs), err = ix.write(ids); err != nil {
		return err
	}
	if *f.part(kindFilter), err = w.out.table(kindFilter, filterWidth, len(lets), lets.row); err != nil {
		return err
	}
	first := func(a []uint64) func([]byte, int) []byte {
		return func(b []byte, i int) []byte { return le.AppendUint64(b, a[i]) }
	}
	*f.part(kindBlocks), err = w.out.table(kindBlocks, blockWidth, len(w.blocks), w.blockRow)
	if err == nil {
		*f.part(kindKeyFirsts), err = w.out.table(kindKeyFirsts, firstWidth, len(kx.firsts), first(kx.firsts))
	}
	if err == nil {
		*f.part(kindIDFirsts), err = w.out.table(kindIDFirsts, firstWidth, len(ix.firsts), first(ix.firsts))
	}
	if err == nil {
		*f.part(kindQueues), err = w.out.table(kindQueues, queueWidth, len(w.queues), w.queueRow)
	}
	if err == nil {
		err = w.out.block(kindFooter, plain, int(w.out.seed), f.encode()) // the seed is for when the header is lost
	}
	if err == nil {
		err = w.out.flush(w.out.buf, 0)
	}
	if err == nil {
		err = w.out.sync(w.out.off)
	}
	return err
}

func (w *Writer) blockRow(b []byte, i int) []byte {
	r, next := &w.blocks[i], w.n
	if i+1 < len(w.blocks) {
		next = w.blocks[i+1].first
	}
	b = le.AppendUint32(b, w.lengths[i])
	b = le.AppendUint32(b, next-r.first)
	b = le.AppendUint32(b, r.Queue)
	b = le.AppendUint64(b, uint64(r.At))
	return le.AppendUint64(b, r.ID)
}

func (w *Writer) queueRow(b []byte, i int) []byte {
	q := &w.queues[i]
	b = le.AppendUint32(b, q.Queue)
	b = le.AppendUint32(b, q.From)
	b = le.AppendUint32(b, q.To)
	b = le.AppendUint64(b, uint64(q.MinAt))
	return le.AppendUint64(b, uint64(q.MaxAt))
}

// Abort ends the writing and removes the file, unless Finish has returned an sstable. It is
// idempotent.
func (w *Writer) Abort() error {
	if w.fs == nil {
		return nil
	}
	var closed error
	if w.out.file != nil {
		closed = w.out.file.Close()
	}
	err := errors.Join(closed, w.fs.Remove(Name(w.dir, w.number)))
	w.err, w.fs, w.out.file = ErrDone, nil, nil
	return err
}

// indexWriter writes an index.
type indexWriter struct {
	layout
	out    *out
	kind   byte
	items  uint64
	firsts []uint64
	b      []byte // payload of the block that is being filled
	filter filter // the filter of keys, with room for all
}

func (x *indexWriter) write(streams []stream) (e extent, err error) {
	if err := x.out.pad(); err != nil {
		return e, err
	}
	e.off = x.out.off
	err = merge(streams, x.add)
	if err == nil {
		err = x.endBlock()
	}
	e.end = x.out.off
	return e, err
}

func (x *indexWriter) add(i item) error {
	if len(x.b) == 0 {
		x.firsts = append(x.firsts, i.hi)
	}
	x.b = x.put(x.b, i)
	x.items++
	if x.kind == kindKeys {
		x.filter.add(i.hi)
	}
	if len(x.b) < x.perBlock()*x.width {
		return x.out.tick(0)
	}
	return x.endBlock()
}

func (x *indexWriter) endBlock() error {
	if len(x.b) == 0 {
		return nil
	}
	items := len(x.b) / x.width
	x.b = append(x.b, zeros[:x.blockLen(items)-blockHead-len(x.b)]...)
	err := x.out.block(x.kind, plain, items, x.b)
	x.b = x.b[:0]
	return err
}
