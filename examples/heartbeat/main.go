// Package main is a server that closes connections that have been silent for 30 s.
//
//	go run ./examples/heartbeat --listen 127.0.0.1:7000
//	nc 127.0.0.1 7000      # each line you type is a heartbeat
//
// Every connection has one message that says to close it, due in 30 s. A heartbeat rearms
// that message: it is due 30 s later again. The number of heartbeats and connections does
// not matter, because nothing polls and each connection has only one message. Connections
// do not outlive the process, so the messages are kept in memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/memengine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run serves until ctx ends and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("heartbeat", flag.ContinueOnError)
	flags.SetOutput(stderr)
	addr := flags.String("listen", "127.0.0.1:7000", "the address to listen on")
	silence := flags.Duration("silence", 30*time.Second, "how long a connection may be silent")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if *silence <= 0 || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "heartbeat: --silence must be positive, and there are no other arguments")
		return 2
	}
	if err := listen(ctx, *addr, *silence, stdout); err != nil {
		fmt.Fprintln(stderr, "heartbeat:", err)
		return 1
	}
	return 0
}

func listen(ctx context.Context, addr string, silence time.Duration, stdout io.Writer) error {
	c, err := tarry.Open(ctx, "mem:", nil)
	if err != nil {
		return err
	}
	defer c.Close()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "listening on %s\n", ln.Addr())
	return newServer(c, silence).serve(ctx, ln)
}
