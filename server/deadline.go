package server

import (
	"net"
	"os"
	"sync"
	"time"
)

// deadline is until when a connection is read. It is moved several times in each
// request and hardly ever met, and to set it takes a timer: so it is set only where a
// read begins that could miss it, and what is set may lie before what is wanted. A read
// that ends too early for that reason is made again.
type deadline struct {
	mu      sync.Mutex
	wanted  time.Time
	set     time.Time // below; zero: none
	reading int       // reads under way
}

// want moves the deadline, also of the reads under way.
func (d *deadline) want(below net.Conn, t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	if d.reading > 0 && d.tooLate() {
		return d.move(below)
	}
	return nil
}

// tooLate reports whether what is set lies behind what is wanted.
func (d *deadline) tooLate() bool {
	return !d.wanted.IsZero() && (d.set.IsZero() || d.set.After(d.wanted))
}

func (d *deadline) move(below net.Conn) error {
	d.set = d.wanted
	return below.SetReadDeadline(d.wanted)
}

// begin notes that a read begins, unless it is too late for that.
func (d *deadline) begin(below net.Conn) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tooLate() {
		if d.over() {
			return os.ErrDeadlineExceeded
		}
		if err := d.move(below); err != nil {
			return err
		}
	}
	d.reading++
	return nil
}

// over reports whether what is wanted has passed.
func (d *deadline) over() bool { return !d.wanted.IsZero() && !d.wanted.After(time.Now()) }

// end notes that a read has ended, late if by a deadline, and reports whether it is to
// be made again.
func (d *deadline) end(below net.Conn, late bool) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reading--
	if again = late && !d.over(); again {
		_ = d.move(below) // the read would fail as well
	}
	return again
}
