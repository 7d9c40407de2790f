// Package main tells a merchant that an order is paid, by a signed webhook, and tells him
// again after 15 s, 30 s, 3 min, 10 min and 30 min until he answers with 2xx.
//
//	go run ./examples/paynotify --url https://shop.example/paid --order 42
//
// The schedule belongs to the message, and package forward/webhook does the rest: it signs,
// refuses addresses that are not public, and gives up after 10 s. What the merchant answers
// decides: 2xx and the message is gone; 410 and it is dead at once, as he wants no more of
// it; all else, and silence, and he is called again, after the sixth call no more: then the
// message is dead, and stays in the store with his last words. When he names a time with
// Retry-After, he is called no sooner.
//
// # Watching it
//
// With --store http://127.0.0.1:8277 the messages are those of a tarry server, as they
// should be: they outlive this program, which goes on when it is run again, and anybody can
// look at them meanwhile.
//
//	tarry serve
//	go run ./examples/paynotify --store http://127.0.0.1:8277 --url http://127.0.0.1:9000/paid --private --order 42
//	tarry get order.paid 42
//
// Between two calls that shows how many there were ("attempt 2 of 6"), why the last one
// failed ("last error http://127.0.0.1:9000 answered 503 Service Unavailable: closed for
// lunch"), and when the next is due. During a call it is leased, and the call counted. Once
// the merchant knows, it says so for a day ("finished", "acked"), and telling him again of
// the same order does nothing. When he was given up, the state is dead:
//
//	tarry dead ls order.paid         # what no merchant was told of, and why
//	tarry dead redrive order.paid    # call again, with the whole schedule
//
// --faster 60 makes minutes of the schedule seconds, to watch all of it.
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
	url := flags.String("url", "", "where the merchant wants to be told")
	order := flags.String("order", "", "the id of the order that is paid")
	store := flags.String("store", "mem:", "where messages are kept: mem:, disk:DIR, or the URL of a tarry server")
	secretFile := flags.String("secret-file", "", "a file with the merchant's signing secret, whsec_…; while it is rotated two, a line each")
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
	if err := tell(ctx, *store, cfg, *order, *faster, stdout); err != nil {
		fmt.Fprintln(stderr, "paynotify:", err)
		return 1
	}
	return 0
}

// tell tells the merchant of one order, as often as it takes.
func tell(ctx context.Context, store string, cfg *webhook.Config, order string, faster int, progress io.Writer) error {
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
	known, err := paid(ctx, c, order, faster)
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
