package sstable

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Table is an open sstable. Many goroutines may call its methods.
type Table struct {
	*Live

	fs     vfs.FS
	file   vfs.File
	name   string
	number uint64
	seed   uint32
	footer footer

	blocks    []blockRef
	queues    []Queue
	keys, ids index
	filter    filter // of the keys
	weight    weight

	refs   atomic.Int64 // the owner and each reader; 0: the file is closed
	closed atomic.Bool  // the owner has left
	gone   atomic.Bool  // the file is to be removed

	damagedAt damagedAt
}

// Queue is the part of an sstable that one queue has: the positions in [From, To), which are
// never empty, and the range of their times, deleted entries included.
type Queue struct {
	Queue, From, To uint32
	MinAt, MaxAt    int64
}

// Open opens the sstable with a number. All its entries are alive until RestoreBits.
func Open(fs vfs.FS, dir string, number uint64, cfg *Config) (*Table, error) {
	return open(fs, dir, number, cfg, nil)
}

// open is Open, and reuses the memory of room, a filter that is no longer needed.
func open(fs vfs.FS, dir string, number uint64, cfg *Config, room filter) (*Table, error) {
	d := cfg.withDefaults()
	r := &Table{fs: fs, name: Name(dir, number), number: number, filter: room}
	file, err := fs.Open(r.name)
	if err != nil {
		return nil, err
	}
	r.file = file
	r.refs.Store(1)
	if err := r.load(d.ID, uint32(d.GroupWords)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return r, nil
}

// Number is the number of the sstable.
func (r *Table) Number() uint64 { return r.number }

// Bytes is how long the file is.
func (r *Table) Bytes() int64 { return r.footer.part(kindQueues).end + footerSize }

// Memory is how many bytes of memory the open sstable takes: about 2.7 for each entry of 200
// bytes with a key. Each longer entry takes more.
func (r *Table) Memory() int64 {
	n := 32*(cap(r.blocks)+cap(r.queues)) + 8*(cap(r.keys.firsts)+cap(r.ids.firsts)+len(r.dead)) + (4+12)*len(r.left)
	return int64(n + filterWidth*cap(r.filter))
}

// Queues returns the queues that have entries here, in order. The slice must not be changed.
func (r *Table) Queues() []Queue { return r.queues }

// hold keeps the file open until release. It reports false if the sstable is closed.
func (r *Table) hold() bool {
	for !r.closed.Load() {
		n := r.refs.Load()
		if n == 0 {
			break
		}
		if r.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (r *Table) release() error {
	if r.refs.Add(-1) > 0 {
		return nil
	}
	err := r.file.Close()
	if r.gone.Load() {
		err = errors.Join(err, r.fs.Remove(r.name))
	}
	return err
}

// Close allows no new reads. The file is closed with the last read under way. Live can still
// be used. Close is idempotent.
func (r *Table) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	return r.release()
}

// Remove is Close, and removes the file when it is closed. The caller must make sure that
// nothing names it any more.
func (r *Table) Remove() error {
	r.gone.Store(true)
	return r.Close()
}

func (r *Table) damage(off int64, reason string) error {
	r.damagedAt.note(off)
	return &vfs.DamageError{What: ErrDamaged, File: r.name, Offset: off, Reason: reason}
}

// readAt fills b.
func (r *Table) readAt(b []byte, off int64) error {
	n, err := r.file.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return r.damage(off+int64(n), "the file ends")
	}
	if errors.Is(err, syscall.EIO) {
		r.damagedAt.note(off)
	}
	return fmt.Errorf("read %s: %w", r.name, err)
}

// block reads and checks a block of len(b) bytes; its kind is one that is never packed.
func (r *Table) block(kind byte, off int64, b []byte) (payload []byte, count int, err error) {
	if err := r.readAt(b, off); err != nil {
		return nil, 0, err
	}
	payload, _, count, reason := decodeBlock(r.seed, off, kind, b)
	if reason != "" {
		return nil, 0, r.damage(off, reason)
	}
	return payload, count, nil
}

// dataBlock reads, checks and decodes a block of entries, which has n bytes.
func (r *Table) dataBlock(off int64, n int, buf *buffer) (b block, err error) {
	read := buf.sized(n)
	if err := r.readAt(read, off); err != nil {
		return b, err
	}
	payload, coding, count, reason := decodeBlock(r.seed, off, kindData, read)
	if reason == "" && coding == packed {
		payload, reason = unpack(payload, buf)
	}
	if reason != "" {
		return b, r.damage(off, reason)
	}
	b, ok := decodeEntries(payload, count, buf)
	if !ok {
		return b, r.damage(off, otherEntries)
	}
	return b, nil
}

const otherEntries = "a block of other entries than expected"

// blockEnd is where block i of the entries ends.
func (r *Table) blockEnd(i int) int64 {
	if i+1 < len(r.blocks) {
		return r.blocks[i+1].off
	}
	return r.footer.part(kindData).end
}

// entries reads block i of the entries into a buffer.
func (r *Table) entries(i int, buf *buffer) (block, error) {
	ref := &r.blocks[i]
	b, err := r.dataBlock(ref.off, int(r.blockEnd(i)-ref.off), buf)
	if err != nil {
		return block{}, err
	}
	next := r.n
	if i+1 < len(r.blocks) {
		next = r.blocks[i+1].first
	}
	if b.first = ref.first; b.count != int(next-ref.first) || b.place(0) != ref.Place {
		return block{}, r.damage(ref.off, otherEntries)
	}
	return b, nil
}

// buffer is memory for a block.
type buffer struct {
	b        []byte // as it is read
	unpacked []byte
	places   []Place
	ends     []uint32
}

func (b *buffer) sized(n int) []byte       { return grown(&b.b, n) }
func (b *buffer) unpackedFor(n int) []byte { return grown(&b.unpacked, n) }
func (b *buffer) placesFor(n int) []Place  { return grown(&b.places, n) }
func (b *buffer) endsFor(n int) []uint32   { return grown(&b.ends, n) }
func grown[T any](room *[]T, n int) []T {
	if cap(*room) < n {
		*room = make([]T, n)
	}
	return (*room)[:n:n]
}

// large reports whether the memory was for a long entry, or for more entries than usual.
func (b *buffer) large() bool { return cap(b.b) > maxBlock || cap(b.places) > maxBlock/64 }

// leave gives the memory to later blocks, unless it is large.
func (b *buffer) leave() {
	if !b.large() {
		dataBuffers.Put(b)
	}
}

var (
	dataBuffers  = sync.Pool{New: func() any { return new(buffer) }}
	indexBuffers = sync.Pool{New: func() any { return new([indexBlock]byte) }}
)
