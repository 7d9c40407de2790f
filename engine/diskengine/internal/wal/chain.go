package wal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// chain is the segments of a log in a directory.
type chain struct {
	dir  string
	seed uint32

	all    []*segment // open, by number
	begun  []*segment // in order, without gaps
	others []*segment // those that hold nothing of the stream
}

// scan opens the segments in a directory and reads their headers.
func scan(fs vfs.FS, dir string, id uint64) (_ *chain, err error) {
	c := &chain{dir: dir, seed: seed(id)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names { // sorted, and so the numbers are
		number, ok := segmentFiles.Parse(name)
		if !ok {
			continue
		}
		s := &segment{name: filepath.Join(dir, name), number: number}
		if s.file, err = fs.Open(s.name); err != nil {
			return nil, err
		}
		c.all = append(c.all, s)
		if s.size, err = s.file.Size(); err != nil {
			return nil, err
		}
		if err := c.classify(s); err != nil {
			return nil, err
		}
	}
	c.dropBeforeGap()
	return c, nil
}

func (c *chain) close() (err error) {
	for _, s := range c.all {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

// classify reads the header of a segment. If it has another number than the file's name, the
// segment was begun under that number, and is only kept ready now.
func (c *chain) classify(s *segment) error {
	b := make([]byte, headerSize)
	n, u, err := vfs.ReadAround(s.file, b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n == headerSize {
		h, ok, err := decodeHeader(c.seed, b)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if ok && h.number == s.number {
			s.header = h
			c.begun = append(c.begun, s)
			return nil
		}
	}
	s.unread = u.Err
	c.others = append(c.others, s)
	return nil
}

// dropBeforeGap drops the segments before the last gap in the numbers: segments that nothing
// needs are renamed in any order. Whether the rest is enough, read finds out.
func (c *chain) dropBeforeGap() {
	for i := len(c.begun) - 1; i > 0; i-- {
		if c.begun[i-1].number != c.begun[i].number-1 {
			c.others = append(c.others, c.begun[:i]...)
			c.begun = c.begun[i:]
			break
		}
	}
}

// valid returns the begun segments with a part of the stream that counts. A segment's part was
// dropped if a later one goes on where it begins, or before.
func (c *chain) valid() (kept []*segment) {
	for i, s := range c.begun {
		if !slices.ContainsFunc(c.begun[i+1:], func(later *segment) bool { return later.base <= s.base }) {
			kept = append(kept, s)
		}
	}
	return kept
}

// last is the number of the last segment that was begun.
func (c *chain) last() (number uint64) {
	if n := len(c.begun); n > 0 {
		return c.begun[n-1].number
	}
	return 0
}
