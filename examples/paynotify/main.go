// Package main tells a merchant that an order is paid, by a signed webhook, and again after
// 15 s, 30 s, 3 min, 10 min and 30 min until the merchant answers with 2xx.
//
//	go run ./examples/paynotify --url https://shop.example/paid --order 42
//
// The schedule belongs to the message. Package forward/webhook signs the webhook, refuses
// addresses that are not public, and gives up a call after 10 s. After 2xx the message is
// gone; after 410 it is dead at once. After any other answer, or none, it is sent again, but
// not before the time in Retry-After. After the sixth call it is dead, and stays in the store
// with the last error.
//
// With --store http://127.0.0.1:8277 a tarry server keeps the messages. They outlive this
// program, which continues when it is run again:
//
//	tarry serve
//	go run ./examples/paynotify --store http://127.0.0.1:8277 --url http://127.0.0.1:9000/paid --private --order 42
//	tarry get order.paid 42          # how many calls, the last error, when the next is due
//	tarry dead ls order.paid         # which notices were given up, and why
//	tarry dead redrive order.paid    # call again, with the whole schedule
//
// For a day after the merchant knows, another notice of the same order does nothing.
// --faster 60 turns the minutes of the schedule into seconds, to watch all of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/diskengine"
	_ "github.com/tarryhq/tarry/engine/httpengine"
	_ "github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/forward/webhook"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 0 when the merchant knows, 1 when not, 2 for wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("paynotify", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("url", "", "the URL of the merchant's webhook")
	order := flags.String("order", "", "the id of the order that is paid")
	store := flags.String("store", "mem:", "where messages are kept: mem:, disk:DIR, or the URL of a tarry server")
	secretFile := flags.String("secret-file", "", "a file with the merchant's signing secret, whsec_…; during a rotation two, one a line")
	private := flags.Bool("private", false, "call private addresses too, such as this machine's")
	faster := flags.Int("faster", 1, "how many times faster than the schedule to call again")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if *url == "" || *order == "" || *faster < 1 || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "paynotify: give --url and --order, a --faster of at least 1, and no other arguments")
		return 2
	}
	cfg := &webhook.Config{URL: *url}
	cfg.Options.AllowPrivate = *private
	if *secretFile != "" {
		b, err := os.ReadFile(*secretFile)
		if err != nil {
			fmt.Fprintln(stderr, "paynotify:", err)
			return 1
		}
		cfg.Options.Secrets = strings.Fields(string(b))
	}
	if err := notify(ctx, *store, cfg, *order, *faster, stdout); err != nil {
		fmt.Fprintln(stderr, "paynotify:", err)
		return 1
	}
	return 0
}

// notify calls the merchant about one order, as often as it takes.
func notify(ctx context.Context, store string, cfg *webhook.Config, order string, faster int, progress io.Writer) error {
	merchant, err := webhook.New(cfg)
	if err != nil {
		return err
	}
	defer merchant.Close()
	c, err := tarry.Open(ctx, store, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	known, err := pushNotice(ctx, c, order, faster)
	if err != nil {
		return err
	}
	if known {
		fmt.Fprintln(progress, "the merchant knows already")
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	w := newWorker(c, merchant, func(e tarry.Event) {
		if e.Key != order {
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
			ended <- fmt.Errorf("the merchant was given up at call %d: %w", e.Attempt, e.Err)
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
		return errors.New("interrupted before the merchant knew; run it again with the same store to go on")
	}
}
