package wal

// turn does what the writer and the preparer of a log do otherwise, where nothing is done by itself.
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

// refill makes segments ahead, and removes those that are too many.
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

// rest ends the writing of a log that is closed.
func (l *Log) rest() {
	if !l.cfg.Still {
		return
	}
	if l.turn(); l.Err() == nil {
		l.writer.finish(false)
	}
}
