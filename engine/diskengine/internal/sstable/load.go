package sstable

// load reads the parts that are kept in memory.
func (r *Table) load(store uint64, group uint32) error {
	size, err := r.file.Size()
	if err != nil {
		return err
	}
	if err := r.loadHeader(size, store); err != nil {
		return err
	}
	if err := r.loadFooter(size); err != nil {
		return err
	}
	r.Live = newLive(uint32(r.footer.entries), group)
	if err := r.loadBlocks(); err != nil {
		return err
	}
	if r.keys.firsts, err = r.loadFirsts(kindKeyFirsts, &r.keys); err != nil {
		return err
	}
	if r.ids.firsts, err = r.loadFirsts(kindIDFirsts, &r.ids); err != nil {
		return err
	}
	if err := r.loadFilter(); err != nil {
		return err
	}
	return r.loadQueues()
}

func (r *Table) loadHeader(size int64, store uint64) error {
	b := make([]byte, min(size, HeaderSize))
	if err := r.readAt(b, 0); err != nil {
		return err
	}
	h, reason, err := decodeHeader(b)
	switch {
	case err != nil:
		return err
	case reason == "" && h.store != store:
		reason = "an sstable of another store"
	case reason == "" && h.number != r.number:
		reason = "an sstable with another number than its name"
	}
	if reason != "" {
		return r.damage(0, reason)
	}
	r.seed = h.crc
	return nil
}

// loadFooter reads the footer, which says where the indexes are.
func (r *Table) loadFooter(size int64) error {
	at := size - footerSize
	if at < HeaderSize {
		return r.damage(0, "the file ends")
	}
	payload, _, err := r.block(kindFooter, at, make([]byte, footerSize))
	if err != nil {
		return err
	}
	f, reason := decodeFooter(payload, size)
	if reason != "" {
		return r.damage(at, reason)
	}
	r.footer = f
	r.keys = index{layout: f.layout(kindKeys), kind: kindKeys, off: f.part(kindKeys).off, items: f.keys}
	r.ids = index{layout: f.layout(kindIDs), kind: kindIDs, off: f.part(kindIDs).off, items: f.entries}
	return nil
}

// part gives each the blocks of a kind, one after the other.
func (r *Table) part(kind byte, each func(off int64, payload []byte) bool) error {
	p := r.footer.part(kind)
	var head [blockHead]byte
	var b []byte
	for off := p.off; off < p.end; {
		if p.end-off < blockHead {
			return r.damage(off, "no room for a block")
		}
		if err := r.readAt(head[:], off); err != nil {
			return err
		}
		n := blockHead + int64(le.Uint32(head[4:]))
		if n > p.end-off {
			return r.damage(off, "a block that is too long")
		}
		if int64(cap(b)) < n {
			b = make([]byte, n)
		}
		payload, _, err := r.block(kind, off, b[:n])
		if err != nil {
			return err
		}
		if !each(off, payload) {
			return r.damage(off, "a table that cannot be")
		}
		off += n
	}
	return nil
}

// table gives row the rows of a table.
func (r *Table) table(kind byte, width int, row func(b []byte) bool) error {
	return r.part(kind, func(_ int64, payload []byte) bool {
		for ; len(payload) >= width; payload = payload[width:] {
			if !row(payload[:width]) {
				return false
			}
		}
		return len(payload) == 0
	})
}

// rows is the most rows that a table can have.
func (r *Table) rows(kind byte, width int) int64 {
	p := r.footer.part(kind)
	return (p.end - p.off) / int64(width)
}

func (r *Table) loadBlocks() error {
	data := r.footer.part(kindData)
	at, pos, last := data.off, uint64(0), Place{}
	r.blocks = make([]blockRef, 0, r.rows(kindBlocks, blockWidth))
	err := r.table(kindBlocks, blockWidth, func(b []byte) bool {
		length, count := int64(le.Uint32(b)), uint64(le.Uint32(b[4:]))
		p := Place{Queue: le.Uint32(b[8:]), At: int64(le.Uint64(b[12:])), ID: le.Uint64(b[20:])}
		if length <= blockHead || count == 0 || pos+count > uint64(r.n) || at+length > data.end || pos > 0 && p.Compare(last) < 0 {
			return false
		}
		r.blocks = append(r.blocks, blockRef{off: at, first: uint32(pos), Place: p})
		at, pos, last = at+length, pos+count, p
		return true
	})
	if err == nil && (at != data.end || pos != uint64(r.n)) {
		err = r.damage(r.footer.part(kindBlocks).off, "a table of blocks that is not whole")
	}
	return err
}

func (r *Table) loadFirsts(kind byte, x *index) ([]uint64, error) {
	per := uint64(x.perBlock())
	want := int((x.items + per - 1) / per)
	firsts := make([]uint64, 0, want)
	err := r.table(kind, firstWidth, func(b []byte) bool {
		v := le.Uint64(b)
		if n := len(firsts); n == want || n > 0 && firsts[n-1] > v {
			return false
		}
		firsts = append(firsts, v)
		return true
	})
	if err == nil && len(firsts) != want {
		err = r.damage(r.footer.part(kind).off, "a table of an index that is not whole")
	}
	return firsts, err
}

func (r *Table) loadFilter() error {
	most := filterBlocks(r.n)
	room := r.filter[:0]
	if n := min(r.rows(kindFilter, filterWidth), int64(most)); int64(cap(room)) < n {
		room = make(filter, 0, n)
	}
	r.filter = room
	err := r.table(kindFilter, filterWidth, func(b []byte) bool {
		r.filter.appendRow(b)
		return len(r.filter) <= most
	})
	if err == nil && len(r.filter) == 0 && r.keys.items > 0 {
		err = r.damage(r.footer.part(kindFilter).off, "no filter")
	}
	return err
}

func (r *Table) loadQueues() error {
	r.queues = make([]Queue, 0, r.rows(kindQueues, queueWidth))
	at := uint32(0)
	err := r.table(kindQueues, queueWidth, func(b []byte) bool {
		q := Queue{Queue: le.Uint32(b), From: le.Uint32(b[4:]), To: le.Uint32(b[8:]),
			MinAt: int64(le.Uint64(b[12:])), MaxAt: int64(le.Uint64(b[20:]))}
		if n := len(r.queues); q.From != at || q.To <= q.From || q.To > r.n || q.MaxAt < q.MinAt || n > 0 && r.queues[n-1].Queue >= q.Queue {
			return false
		}
		r.queues = append(r.queues, q)
		at = q.To
		return true
	})
	if err == nil && at != r.n {
		err = r.damage(r.footer.part(kindQueues).off, "a table of queues that is not whole")
	}
	return err
}
