// Package main is a shop that does two things later. It cancels an order that is not paid
// within 30 minutes, and it rates an order five stars if the customer has not answered 48
// hours after the request for a review. It replays a CSV file of orders in virtual time.
//
//	go run ./examples/orders --file examples/orders/testdata/orders.csv
//
// shop.go is what any shop would write: a push, a cancel by key, a handler. replay.go moves
// the engine's clock from event to event, and claims each message when it is due. The test
// runs the same shop with a Worker, by package tarrytest.
//
// Times are in whole milliseconds. A payment or answer in the millisecond in which the
// message is due is in time. A payment before the purchase, or an answer before the request,
// counts as if both came at the same time. Without a purchase or request it does not count.
//
// With --store the messages are on disk, and a run after kill -9 continues. It replays the
// file from the beginning. The push of a key that is live or remembered makes no new
// message, and its answer says how a finished one ended. So the counts are exact, and no
// finished message is handled again. Each step waits for the disk: a big file takes minutes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/tarryhq/tarry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 2 for wrong usage or a wrong file, 5 when the store is in use.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("orders", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("file", "", "CSV with the columns order_id, purchased_at, approved_at, review_asked_at, review_answered_at")
	dir := flags.String("store", "", "the directory of the messages, where a stopped replay continues (default: in memory)")
	asJSON := flags.Bool("json", false, "print one JSON object")
	fail := func(code int, err error) int {
		fmt.Fprintln(stderr, "orders:", err)
		return code
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case *file == "" || flags.NArg() > 0:
		return fail(2, errors.New("name the file of orders with --file; there are no other arguments"))
	}
	start := time.Now()
	s := newShop()
	events, orders, err := s.read(*file)
	if err != nil {
		return fail(2, err)
	}
	switch err := replay(ctx, events, *dir); {
	case err != nil && ctx.Err() != nil:
		return fail(1, errors.New("interrupted; with --store the next run continues"))
	case errors.Is(err, tarry.ErrInvalid), errors.Is(err, errOtherFile):
		return fail(2, err)
	case errors.Is(err, tarry.ErrUnavailable):
		return fail(5, err)
	case err != nil:
		return fail(1, err)
	}
	r := s.report(orders)
	r.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	if *asJSON {
		err = json.NewEncoder(stdout).Encode(r)
	} else {
		err = r.table(stdout)
	}
	if err != nil {
		return fail(1, err)
	}
	return 0
}

// report is what a replay counts, and what --json prints.
type report struct {
	Orders           int     `json:"orders"`
	OrdersCancelled  int64   `json:"orders_cancelled"`
	CancelsCalledOff int64   `json:"cancels_called_off"`
	ReviewsAutomatic int64   `json:"reviews_automatic"`
	ReviewsGiven     int64   `json:"reviews_given"`
	Seconds          float64 `json:"seconds"`
}

func (s *shop) report(orders int) report {
	return report{
		Orders:          orders,
		OrdersCancelled: s.unpaid.done.Load(), CancelsCalledOff: s.unpaid.calledOff.Load(),
		ReviewsAutomatic: s.review.done.Load(), ReviewsGiven: s.review.calledOff.Load(),
	}
}

// table prints the report for people.
func (r *report) table(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "%d\t orders\n", r.Orders)
	fmt.Fprintf(tw, "%d\t cancelled, unpaid for 30 minutes\n", r.OrdersCancelled)
	fmt.Fprintf(tw, "%d\t paid in time\n", r.CancelsCalledOff)
	fmt.Fprintf(tw, "%d\t rated five stars after 48 hours\n", r.ReviewsAutomatic)
	fmt.Fprintf(tw, "%d\t rated by the customer in time\n", r.ReviewsGiven)
	fmt.Fprintf(tw, "%.3f\t seconds\n", r.Seconds)
	return tw.Flush()
}
