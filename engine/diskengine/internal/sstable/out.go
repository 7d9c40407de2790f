package sstable

import (
	"hash/crc32"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// out writes a file from its start to its end, in slices.
type out struct {
	file   vfs.File
	cfg    *Config
	seed   uint32
	buf    []byte
	off    int64 // where the next bytes go
	synced int64 // up to where the file is synced
	fresh  int   // bytes written since the last call of Pace
	ticks  int   // items handled since then
	read   int   // bytes read since then
	long   bool  // a block of more than a slice is being written
	head   [blockHead]byte
}

const (
	outSlice   = 128 << 10
	tickOf     = 4096 // items handled between two calls of Pace
	hastySyncs = 8    // times SyncBytes between two syncs of long blocks in haste
)

// write writes full slices to the file, and leaves the rest in the buffer.
func (o *out) write(p []byte) error {
	o.off += int64(len(p))
	for len(p) > 0 {
		n := min(len(p), o.cfg.slice-len(o.buf))
		full := p[:n]
		if n < o.cfg.slice {
			o.buf = append(o.buf, full...)
			full = o.buf
		}
		p = p[n:]
		if len(full) == o.cfg.slice {
			if err := o.flush(full, int64(len(p))); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes b, which is the buffer or comes right after an empty one. behind is how many
// bytes up to off follow it.
func (o *out) flush(b []byte, behind int64) error {
	if len(b) == 0 {
		return nil
	}
	end := o.off - behind
	if _, err := o.file.WriteAt(b, end-int64(len(b))); err != nil {
		return err
	}
	o.fresh += len(b)
	o.buf = o.buf[:0]
	if n := end - o.synced; n >= hastySyncs*o.cfg.SyncBytes || n >= o.cfg.SyncBytes && !(o.long && o.cfg.Hasty()) {
		if err := o.sync(end); err != nil {
			return err
		}
	}
	return o.pace()
}

func (o *out) sync(end int64) error {
	o.synced = end
	return o.file.Sync()
}

func (o *out) pace() error {
	n := o.fresh
	o.fresh, o.ticks, o.read = 0, 0, 0
	return o.cfg.Pace(n)
}

// tick counts an item that was handled, and the bytes that were read for it.
func (o *out) tick(read int) error {
	o.read += read
	if o.ticks++; o.ticks < tickOf && o.read < outSlice {
		return nil
	}
	return o.pace()
}

// block writes a block. Its payload is all parts together.
func (o *out) block(kind, coding byte, count int, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	putHead(o.head[:], kind, coding, count, n)
	crc := sum(o.seed, o.off, o.head[4:])
	for _, p := range parts {
		for ; len(p) > outSlice; p = p[outSlice:] {
			crc = crc32.Update(crc, castagnoli, p[:outSlice])
			if err := o.pace(); err != nil {
				return err
			}
		}
		crc = crc32.Update(crc, castagnoli, p)
	}
	le.PutUint32(o.head[:], crc)
	o.long = n > o.cfg.slice
	if err := o.write(o.head[:]); err != nil {
		return err
	}
	for _, p := range parts {
		if err := o.write(p); err != nil {
			return err
		}
	}
	return nil
}

var zeros [indexBlock]byte

// pad writes zeros up to where an index may begin.
func (o *out) pad() error {
	return o.write(zeros[:-o.off&(indexBlock-1)])
}

// table writes rows of one width as blocks.
func (o *out) table(kind byte, width, rows int, row func(b []byte, i int) []byte) (e extent, err error) {
	e.off = o.off
	per := tableBytes / width
	b := make([]byte, 0, min(per, rows)*width)
	for i := 0; i < rows && err == nil; {
		b = b[:0]
		from := i
		for ; i < min(rows, from+per); i++ {
			b = row(b, i)
		}
		err = o.block(kind, plain, i-from, b)
	}
	e.end = o.off
	return e, err
}
