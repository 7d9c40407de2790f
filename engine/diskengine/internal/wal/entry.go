package wal

import "fmt"

// Entry is an entry that was appended.
type Entry struct {
	Kind       byte
	Bytes      []byte // only to be read, and only until the function that gets the Entry returns
	Start, End Pos
}

// cutter cuts a stream that comes in pieces into entries.
type cutter struct {
	from Pos // fn gets the entries from here on
	most int // the most bytes of an entry
	fn   func(Entry) error

	whole bool   // the stream has come to where an entry begins
	start Pos    // where rest begins
	rest  []byte // the beginning of an entry; its other bytes are still to come

	// Where the last entry ended, and the checksum of the frame with the byte before that.
	end  Pos
	prev uint32
}

// misfit says that the pieces of a stream make no entries, though their checksums match.
type misfit string

func (m misfit) Error() string { return string(m) }

// add takes the piece of a frame. It must not be empty.
func (c *cutter) add(f frame) error {
	b, at := f.piece, f.pos
	if !c.whole {
		b, at = b[f.first:], at+Pos(f.first)
		if at > c.from {
			return c.noEntry()
		}
		if len(b) == 0 { // it belongs to an entry that began in a segment that is gone
			c.end, c.prev = at, f.crc
			return nil
		}
		c.whole, c.start = true, at
	}
	if len(c.rest) > 0 {
		c.rest = append(c.rest, b...)
		b, at = c.rest, c.start
	} else if at == f.pos && f.first != 0 {
		return misfit("a frame goes on with an entry that has ended")
	}
	for len(b) > 0 {
		kind, n, size := entryHead(b)
		if size < 0 || n > c.most {
			return misfit(fmt.Sprintf("an entry is longer than %d bytes", c.most))
		}
		if size == 0 || len(b) < size+n {
			break
		}
		e := Entry{Kind: kind, Bytes: b[size:][:n:n], Start: at, End: at + Pos(size+n)}
		if e.Start < c.from && e.End > c.from {
			return c.noEntry()
		}
		if e.Start >= c.from {
			if err := c.fn(e); err != nil {
				return err
			}
		}
		b, at = b[size+n:], e.End
	}
	if at > f.pos {
		c.end, c.prev = at, f.crc
	}
	c.start, c.rest = at, append(c.rest[:0], b...)
	return nil
}

func (c *cutter) noEntry() error {
	return misfit(fmt.Sprintf("no entry begins at position %d", c.from))
}
