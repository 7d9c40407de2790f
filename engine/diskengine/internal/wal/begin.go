package wal

import "fmt"

// Begin begins the first segment, durably, unless one was begun before. From then on there is
// always one, and Config.Begun holds. Begin is called before anything is appended. If no segment
// could be made ahead, as on a full disk, it fails and the log begins one later. Any other error
// stops the log.
func (l *Log) Begin() error {
	w := l.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	l.mu.Lock()
	begun, ahead, why := len(l.live) > 0, len(l.spares) > 0, l.spareErr
	l.mu.Unlock()
	switch {
	case begun:
		return nil
	case !ahead:
		return fmt.Errorf("begin the log: %w", why)
	}
	err := w.turn()
	if err == nil {
		err = w.sync()
	}
	if err == nil {
		err = w.mark() // it says that the header is durable
	}
	if err != nil {
		l.fail(err)
		return fmt.Errorf("begin the log: %w", err)
	}
	return nil
}
