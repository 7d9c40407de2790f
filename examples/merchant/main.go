// Package main tells a merchant that a payment has succeeded, and tells him again
// after 15 s, 30 s, and then every 3 minutes until he answers.
//
//	go run ./examples/merchant --url http://127.0.0.1:9000/paid --payment 42
//
// The schedule belongs to the message: a handler that fails only returns its error.
// After ten calls without an answer the message is dead, and stays in the store
// with the last error for somebody to look at. With --store disk:DIR the
// notification outlives this program: run it again and it goes on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/diskengine"
	_ "github.com/tarryhq/tarry/engine/memengine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 0 when the merchant has answered, 1 when not, 2 for
// wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("merchant", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("url", "", "where the merchant wants to be told")
	payment := flags.String("payment", "", "the id of the payment")
	storeURL := flags.String("store", "mem:", "where messages are kept: mem: or disk:DIR")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if *url == "" || *payment == "" || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "merchant: give --url and --payment, and nothing else")
		return 2
	}
	c, err := tarry.Open(ctx, *storeURL, nil)
	if err != nil {
		fmt.Fprintln(stderr, "merchant:", err)
		return 1
	}
	defer c.Close()
	if err := notify(ctx, c, Payment{ID: *payment, URL: *url}, stdout); err != nil {
		fmt.Fprintln(stderr, "merchant:", err)
		return 1
	}
	return 0
}

// notify pushes one notification and works until it has ended.
func notify(ctx context.Context, c *tarry.Client, p Payment, progress io.Writer) error {
	if err := tell(ctx, c, p); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	w := newWorker(c, post(&http.Client{Timeout: 10 * time.Second}), func(e tarry.Event) {
		if e.Key != p.ID {
			return
		}
		switch e.Kind {
		case tarry.Retried:
			fmt.Fprintf(progress, "call %d: %v; again at %s\n", e.Attempt, e.Err, e.Until.Format(time.TimeOnly))
		case tarry.Acked:
			fmt.Fprintf(progress, "call %d: the merchant knows\n", e.Attempt)
			ended <- nil
			stop()
		case tarry.Died, tarry.Buried:
			ended <- fmt.Errorf("the merchant did not answer %d calls: %w", e.Attempt, e.Err)
			stop()
		}
	})
	if err := w.Run(ctx); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	default:
		return errors.New("interrupted before the merchant has answered")
	}
}
