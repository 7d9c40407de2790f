// Package main is a worker that cancels a shop's unpaid orders. worker.py is the same worker
// in Python, worker.mjs in Node. Any number of them share the orders of one server:
//
//	go run ./cmd/tarry serve
//	go run ./examples/workers
//	PYTHONPATH=clients/python python3 examples/workers/worker.py
//	npm --prefix clients/node ci && npm --prefix clients/node run build
//	npm --prefix examples/workers install --no-save ./clients/node
//	node examples/workers/worker.mjs
//	go run ./cmd/tarry push order.unpaid '{"id":"42"}' --in 5s --key 42
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/httpengine"
)

// Order is the body of the messages, whose keys are the orders' ids.
type Order struct {
	ID string `json:"id"`
}

// Unpaid is the queue of orders to cancel unless they are paid in time.
var Unpaid = tarry.NewTopic[Order]("order.unpaid")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := cmp.Or(os.Getenv("TARRY_SERVER"), "http://127.0.0.1:8277")
	if err := run(ctx, server, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "workers:", err)
		os.Exit(1)
	}
}

// run handles orders until ctx ends.
func run(ctx context.Context, server string, out io.Writer) (err error) {
	c, err := tarry.Open(ctx, server, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 5})
	tarry.Handle(w, Unpaid, func(ctx context.Context, m *tarry.Message[Order]) error {
		_, err := fmt.Fprintf(out, "Go cancels order %s\n", m.Body.ID)
		return err
	})
	return w.Run(ctx)
}
