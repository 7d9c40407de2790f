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

// Main runs the command line of this process and returns its exit code.
func Main() int {
	ballast := tune()
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
		Reloads:  reloads,
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

// tune lets the kernel choose what runs first, and avoids frequent collections of a small heap
// while the ballast is kept alive. See docs/decisions/runtime.md.
func tune() (ballast []byte) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	}
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		// Never written, so it takes no memory, but the collector counts it.
		ballast = make([]byte, heapFloor)
	}
	return ballast
}
