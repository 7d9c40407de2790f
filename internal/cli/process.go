package cli

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
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
