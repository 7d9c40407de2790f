package wal

import (
	"fmt"
	"slices"
)

// Begin begins the first segment, durably, unless one was begun before. From then on there is
// always one, and Config.Begun holds. Begin is called before anything is appended. It may fail
// if the disk is full: the log then begins the segment later.
func (l *Log) Begin() error {
	if err := l.writer.begin(); err != nil {
		return fmt.Errorf("begin the log: %w", err)
	}
	return nil
}

func (w *writer) begin() error {
	l := w.l
	w.mu.Lock()
	defer w.mu.Unlock()
	l.mu.Lock()
	live, spares, why := len(l.live), slices.Clone(l.spares), l.spareErr
	l.mu.Unlock()
	if live > 0 {
		return nil
	}
	if len(spares) == 0 {
		return why // why opening could not make one
	}
	s := spares[0]
	head := header{number: s.number, base: w.pos, salt: l.cfg.Salt(), prev: w.lastFull, store: l.cfg.ID}
	b := head.encode(l.seed)
	s.off = 0
	err := s.write(b, false)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		return err
	}
	mark := frame{pos: w.pos, synced: l.Synced(), prev: head.crc} // after the sync: it says the header is durable
	b = b[:frameSize]
	clear(b)
	mark.encode(l.seed, b, 0)
	if err := s.write(b, false); err != nil {
		return err
	}
	w.seg, w.prev = s, mark.crc
	l.mu.Lock()
	defer l.mu.Unlock()
	s.header, s.durable = head, true
	l.live = append(l.live, s)
	l.spares = append(l.spares[:0:0], l.spares[1:]...)
	signal(l.kick)
	return nil
}
