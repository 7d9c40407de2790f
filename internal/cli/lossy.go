package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// lossyAfter is how long a line may wait to be written before lines are dropped.
const lossyAfter = 500 * time.Millisecond

var errNotRead = errors.New("what is written is not taken: nobody reads it, or the disk hangs")

// lossyWriter delays nobody for longer than lossyAfter. While a line is stuck, further lines
// are dropped and counted. It may be used by many goroutines; their lines do not mix.
type lossyWriter struct {
	out   io.Writer
	tell  bool          // once writing succeeds again, say how many lines are missing
	turn  chan struct{} // holds a token while a line is written
	stuck atomic.Bool   // the line being written has used up its time
	lost  atomic.Int64
}

func newLossyWriter(out io.Writer, tell bool) *lossyWriter {
	return &lossyWriter{out: out, tell: tell, turn: make(chan struct{}, 1)}
}

// written is the result of writing a line.
type written struct {
	n   int
	err error
}

// Write returns once the line is written or dropped, or has used up its time. In that last
// case writing goes on, and no error is returned.
func (w *lossyWriter) Write(b []byte) (int, error) {
	limit := time.NewTimer(lossyAfter)
	defer limit.Stop()
	if w.stuck.Load() {
		limit.Reset(0)
	}
	select {
	case w.turn <- struct{}{}:
	case <-limit.C:
		w.lost.Add(1)
		return 0, errNotRead
	}
	done := make(chan written, 1)
	go func(line []byte) {
		done <- w.write(line)
		w.stuck.Store(false)
		<-w.turn
	}(bytes.Clone(b))
	select {
	case r := <-done:
		return r.n, r.err
	case <-limit.C:
	}
	w.stuck.Store(true)
	select {
	case r := <-done: // written just now, perhaps before stuck was set
		w.stuck.Store(false)
		return r.n, r.err
	default:
		return len(b), nil
	}
}

// write writes a line, however long that takes.
func (w *lossyWriter) write(line []byte) (r written) {
	if n := w.lost.Swap(0); n > 0 && w.tell {
		if _, err := fmt.Fprintf(w.out, "tarry: lines missing here, as they could not be written: %d\n", n); err != nil {
			w.lost.Add(n)
		}
	}
	if r.n, r.err = w.out.Write(line); r.err != nil {
		w.lost.Add(1)
	}
	return r
}

// outliveOutput keeps the program running when its log output is gone, which would end it by
// SIGPIPE, or blocked. Commands that it starts still end by SIGPIPE.
func (p *Program) outliveOutput() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	p.Stderr = newLossyWriter(p.Stderr, true)
}
