// Package main is a shop's checkout. An order that is not paid in time is cancelled, and no
// open order is ever without its timeout, nor a timeout without its order.
//
//	go run ./examples/checkout --db postgres://postgres@127.0.0.1:5432/postgres --within 20s
//
//	curl -X POST http://127.0.0.1:8080/orders/42         # places an order
//	curl -X POST http://127.0.0.1:8080/orders/42/payment # pays it
//	curl http://127.0.0.1:8080/orders/42                 # open, paid or cancelled
//
// All it needs is the URL of a PostgreSQL database in which it may create tables: its own,
// called checkout_order, and tarry's. Any number of these programs may share a database.
//
// It consists of three transactions (shop.go):
//
//   - place writes the order and pushes its timeout;
//   - pay marks the order paid and cancels its timeout;
//   - expire, which the worker calls, cancels the order and acks the timeout.
//
// Messages are rows of the same database, so each transaction happens whole or not at all,
// whenever the program, the database or the machine dies. Nothing has to look for forgotten
// orders.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/tarryhq/tarry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run serves until ctx ends and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("checkout", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("db", "", "the database: postgres://user:password@host/database")
	addr := flags.String("listen", "127.0.0.1:8080", "the address to listen on")
	within := flags.Duration("within", 30*time.Minute, "how long an order may stay unpaid")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if *url == "" || *within <= 0 || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "checkout: name the database with --db; --within must be positive, and there are no other arguments")
		return 2
	}
	if err := serve(ctx, *url, *addr, *within, stdout); err != nil {
		fmt.Fprintln(stderr, "checkout:", err)
		return 1
	}
	return 0
}

// takeOver is how long a timeout waits for another program if the one that was handling it
// has died.
const takeOver = 5 * time.Second

// serve opens the shop, takes orders and payments, and runs the worker, until ctx ends.
func serve(ctx context.Context, url, addr string, within time.Duration, out io.Writer) error {
	s, err := open(ctx, url)
	if err != nil {
		return err
	}
	defer s.close()
	s.within, s.out = within, out
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	w := tarry.NewWorker(s.messages, &tarry.WorkerConfig{LeaseTTR: takeOver})
	tarry.Handle(w, Unpaid, s.expire)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	srv := &http.Server{Handler: s.routes()}
	var working sync.WaitGroup
	var worked error
	working.Go(func() {
		worked = w.Run(ctx)
		stop()
		_ = srv.Shutdown(context.WithoutCancel(ctx)) // it waits for the requests under way
	})
	fmt.Fprintf(out, "listening on %s\n", ln.Addr())
	err = srv.Serve(ln)
	stop()
	working.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, worked)
}
