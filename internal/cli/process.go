package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/coreos/go-systemd/v22/daemon"
)

// Main runs the command line of this process and returns its exit code.
func Main() int {
	ballast, limit := tune()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal drains. The handler is then gone, so a second one kills.
	context.AfterFunc(ctx, stop)
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	p := &Program{
		Args:     os.Args[1:],
		Env:      os.Environ(),
		Stdin:    os.Stdin,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Terminal: isTerminal(os.Stdin) && isTerminal(os.Stderr),
		Now:      time.Now,
		Self:     self,
		Limit:    limit,
		Reloads:  reloads,
		Drains:   drains,
	}
	if filepath.Base(os.Args[0]) == "beanstalkd" { // a link for unit files and test suites
		p.Args = append([]string{"beanstalkd"}, p.Args...)
	}
	// Engines log to standard error, for an operator who watches it.
	slog.SetDefault(slog.New(slog.NewTextHandler(standardError{p}, &slog.HandlerOptions{Level: slog.LevelWarn})))
	code := p.Run(ctx)
	stop()
	runtime.KeepAlive(ballast)
	return code
}

// standardError is the program's current standard error, which may be replaced.
type standardError struct{ *Program }

func (s standardError) Write(b []byte) (int, error) { return s.Stderr.Write(b) }

// heapFloor is about how many bytes the heap grows at least between two collections.
const heapFloor = 16 << 20

// tune lets the kernel choose what runs first, avoids frequent collections of a small heap while
// the ballast is kept alive, and returns the limit that limitMemory set. See
// docs/decisions/runtime.md.
func tune() (ballast []byte, limit int64) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil, 0
	}
	if os.Getenv("GOGC") == "" {
		// Never written, so it takes no memory, but the collector counts it.
		ballast = make([]byte, heapFloor)
	}
	return ballast, limitMemory(memlimit.FromCgroup, len(ballast))
}

// limitMemory has the collector keep this process below nine tenths of its container's memory,
// and returns these; 0: the container has no limit. What is unused but counted is no memory.
func limitMemory(container memlimit.Provider, unused int) int64 {
	most, err := memlimit.ApplyRatio(container, 0.9)()
	if err != nil || most >= math.MaxInt64-heapFloor {
		return 0
	}
	debug.SetMemoryLimit(int64(most) + int64(unused))
	return int64(most)
}

// sayLimit tells the operator of a limit that Main has set.
func (p *Program) sayLimit() {
	if p.Limit > 0 {
		fmt.Fprintf(p.Stderr, "tarry: memory limit %s, nine tenths of the container's; GOMEMLIMIT sets another\n", sizeText(p.Limit))
	}
}

// notified reports whether systemd wants to know the service's state.
func notified() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// notify tells systemd the service's state, as sd_notify(3) describes. Without systemd it does
// nothing.
func notify(logger *slog.Logger, states ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(states, "\n")); err != nil {
		logger.Warn("systemd cannot be told how the service stands", "error", err)
	}
}

func notifyReady(logger *slog.Logger) { notify(logger, daemon.SdNotifyReady, "STATUS=serving") }

// notifyReloading tells systemd that files are being read again. notifyReady must follow.
func notifyReloading(logger *slog.Logger) {
	notify(logger, daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}

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

// auditFile is the path of a file to append lines to. The file is opened for each, so that it
// may be rotated by renaming.
type auditFile string

func (a auditFile) open() (*os.File, error) {
	return os.OpenFile(string(a), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

func (a auditFile) Write(b []byte) (int, error) {
	f, err := a.open()
	if err != nil {
		return 0, err
	}
	n, err := f.Write(b)
	return n, cmp.Or(err, f.Close())
}
