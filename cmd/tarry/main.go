// Command tarry delivers messages later: it is the server, the client of a server
// or of a store, a worker that runs commands, and the benchmark.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	spread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal drains; with the handler gone a second one ends at once.
	context.AfterFunc(ctx, stop)
	// What the engines log is for an operator who watches standard error.
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
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
	}
	code := p.Run(ctx)
	stop()
	os.Exit(code)
}

// spread gives Go twice as many threads as there are cores. While compactions keep
// every processor of Go's scheduler busy, for up to 10 ms each, a handler that is
// due waits its turn; the kernel would let it go first. See docs/decisions.
func spread() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	}
}
