package wal

// turn does the work of the writer and the preparer if nothing happens by itself
// (Config.Still).
func (l *Log) turn() {
	if !l.cfg.Still {
		return
	}
	for l.Err() == nil {
		f, bufs, _ := l.take()
		if f == nil {
			break
		}
		pos, err := l.writer.flush(f, bufs)
		if err != nil {
			l.fail(err)
		}
		if l.done(f, bufs, pos) {
			return
		}
	}
	l.refill()
}

// refill does the work of the preparer alone.
func (l *Log) refill() {
	if !l.cfg.Still {
		return
	}
	for more := true; more && l.Err() == nil; {
		var err error
		more, err = l.prepare()
		l.noteSpare(more, err)
		more = more && err == nil || l.relieved(err)
	}
}

// rest writes the end of a log that is being closed.
func (l *Log) rest() {
	if !l.cfg.Still {
		return
	}
	if l.turn(); l.Err() == nil {
		l.writer.finish(false)
	}
}
