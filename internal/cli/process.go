package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// Main runs the command line of this process, and returns its exit code.
func Main() int {
	ballast := tune()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal drains; with the handler gone a second one ends at once.
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
		Reloads:  reloads,
	}
	// What the engines log is for an operator who watches standard error.
	slog.SetDefault(slog.New(slog.NewTextHandler(standardError{p}, &slog.HandlerOptions{Level: slog.LevelWarn})))
	code := p.Run(ctx)
	stop()
	runtime.KeepAlive(ballast)
	return code
}

// standardError is the standard error of the program, which may change.
type standardError struct{ *Program }

func (s standardError) Write(b []byte) (int, error) { return s.Stderr.Write(b) }

// heapFloor is how much a heap grows at least between two collections, in bytes.
const heapFloor = 16 << 20

// tune lets the kernel choose what runs first, and spares collections of small heaps
// as long as its answer is kept: see docs/decisions/runtime.md.
func tune() (ballast []byte) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	}
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		// Nobody writes to it, so it takes no memory; the collector counts it.
		ballast = make([]byte, heapFloor)
	}
	return ballast
}
