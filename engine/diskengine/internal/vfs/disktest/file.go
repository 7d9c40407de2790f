package disktest

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// file is an open file of a Disk.
type file struct {
	disk   *Disk
	inode  *inode
	name   string
	closed bool
}

// do carries out a call, if the file is still open by then.
func (f *file) do(op string, off int64, n int, fn func() error) error {
	failed := f.disk.begin(op, f.name, off, n)
	if failed != nil && !late(failed) {
		return failed
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return fail(op, f.name, fs.ErrClosed)
	}
	return cmp.Or(fail(op, f.name, fn()), failed)
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	atEnd := false
	err = f.do(Read, off, len(p), func() error {
		if off < 0 {
			return syscall.EINVAL
		}
		n = int(max(0, min(int64(len(p)), f.inode.size-off)))
		atEnd = n < len(p)
		f.each(off, n, func(i, from, to, at int) bool {
			if i < len(f.inode.data) && f.inode.data[i] != nil {
				copy(p[at:], f.inode.data[i][from:to])
			} else {
				clear(p[at : at+to-from])
			}
			return true
		})
		return nil
	})
	if err == nil && atEnd {
		err = io.EOF
	}
	return n, err
}

// each calls fn for the sectors of a range, with the part of the sector and its distance from
// the start of the range, until fn returns false.
func (f *file) each(off int64, n int, fn func(i, from, to, at int) bool) {
	sector := f.disk.cfg.Sector
	for at := 0; at < n; {
		i, from := int((off+int64(at))/int64(sector)), int((off+int64(at))%int64(sector))
		to := min(sector, from+n-at)
		if !fn(i, from, to, at) {
			return
		}
		at += to - from
	}
}

// WriteAt implements io.WriterAt.
func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	failed := f.disk.ask(Call{Op: Write, Name: f.name, Off: off, Len: len(p), Data: p})
	if failed != nil {
		var short *Short
		switch {
		case errors.As(failed, &short):
			p = p[:min(len(p), short.Bytes)]
		case !late(failed):
			return 0, failed
		}
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return 0, fail(Write, f.name, fs.ErrClosed)
	}
	if off < 0 {
		return 0, fail(Write, f.name, syscall.EINVAL)
	}
	if n = f.write(p, off); n < len(p) {
		return n, fail(Write, f.name, syscall.ENOSPC)
	}
	return n, failed
}

// write writes as much of p as there is space for, and returns how much that was.
func (f *file) write(p []byte, off int64) (n int) {
	d, sector := f.disk, f.disk.cfg.Sector
	p = append([]byte(nil), p...)
	f.each(off, len(p), func(i, from, to, at int) bool {
		var was []byte
		if i < len(f.inode.data) {
			was = f.inode.data[i]
		}
		if was == nil {
			if d.left() == 0 {
				return false
			}
			d.take(1)
		}
		b := p[at : at+to-from : at+to-from]
		if len(b) < sector {
			b = make([]byte, sector)
			copy(b, was)
			copy(b[from:to], p[at:])
		}
		f.inode.put(i, b)
		n = at + to - from
		return true
	})
	if n > 0 {
		f.inode.setSize(max(f.inode.size, off+int64(n)))
	}
	return n
}

// Sync implements vfs.File. Bytes written while it is under way stay unsure.
func (f *file) Sync() error {
	f.disk.mu.Lock()
	began := f.inode.mark()
	f.disk.mu.Unlock()
	failed := f.disk.begin(Sync, f.name, 0, 0)
	if failed != nil && !late(failed) {
		f.disk.mu.Lock()
		defer f.disk.mu.Unlock()
		f.inode.settle(f.disk.cfg.Dropped, nil)
		if f.disk.cfg.Forgets {
			f.disk.take(-f.inode.taken())
			f.inode.revert(f.disk.cfg.Sector)
			f.disk.take(f.inode.taken())
		}
		return failed
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return fail(Sync, f.name, fs.ErrClosed)
	}
	f.inode.settleTo(began)
	return failed
}

// Preallocate implements vfs.File.
func (f *file) Preallocate(off, n int64) error {
	return f.do(Preallocate, off, int(n), func() error {
		if off < 0 || n <= 0 {
			return syscall.EINVAL
		}
		var holes []int
		f.each(off, int(n), func(i, _, _, _ int) bool {
			if i >= len(f.inode.data) || f.inode.data[i] == nil {
				holes = append(holes, i)
			}
			return true
		})
		if int64(len(holes)) > f.disk.left() {
			return syscall.ENOSPC
		}
		if len(holes) > 0 {
			f.inode.fill(holes, make([]byte, f.disk.cfg.Sector))
			f.disk.take(len(holes))
		}
		f.inode.setSize(max(f.inode.size, off+n))
		return nil
	})
}

// Size implements vfs.File.
func (f *file) Size() (size int64, err error) {
	err = f.do(Size, 0, 0, func() error { size = f.inode.size; return nil })
	return size, err
}

// Close implements io.Closer. The file is closed whatever the hook says.
func (f *file) Close() error {
	err := f.disk.begin(Close, f.name, 0, 0)
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return fail(Close, f.name, fs.ErrClosed)
	}
	f.closed = true
	f.inode.handles--
	f.disk.handles--
	f.disk.leave(f.inode)
	return err
}
