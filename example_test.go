package tarry_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
)

type Order struct{ ID string }

var Unpaid = tarry.NewTopic[Order]("order.unpaid")

func ExampleTopic() {
	ctx := context.Background()
	c := tarry.New(memengine.New(nil), nil) // or tarry.Open(ctx, "disk:tarry-data", nil)
	defer c.Close()

	p, err := Unpaid.Push(ctx, c, Order{"42"}, tarry.In(30*time.Minute), tarry.Key("42"))
	fmt.Println(p.Outcome, p.State, err)

	p, err = Unpaid.Push(ctx, c, Order{"42"}, tarry.Key("42"), tarry.OnConflict(tarry.Keep))
	fmt.Println(p.Outcome, p.State, err)

	fmt.Println(Unpaid.Cancel(ctx, c, tarry.ByKey("42"))) // it was paid
	// Output:
	// created scheduled <nil>
	// kept scheduled <nil>
	// <nil>
}

func ExampleWorker() {
	ctx, stop := context.WithCancel(context.Background())
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()

	w := tarry.NewWorker(c, nil)
	tarry.Handle(w, Unpaid, func(ctx context.Context, m *tarry.Message[Order]) error {
		fmt.Println("cancel order", m.Body.ID, "at attempt", m.Attempt)
		stop()
		return nil
	})
	if _, err := Unpaid.Push(ctx, c, Order{"42"}, tarry.In(10*time.Millisecond)); err != nil {
		fmt.Println(err)
	}
	fmt.Println(w.Run(ctx))
	// Output:
	// cancel order 42 at attempt 1
	// <nil>
}

// An invoice is reminded of three times. The message says how often it was.
func ExampleReplaceLeased() {
	type Reminder struct {
		Invoice string
		Sent    int
	}
	reminders := tarry.NewTopic[Reminder]("reminders")
	ctx, stop := context.WithCancel(context.Background())
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()

	w := tarry.NewWorker(c, nil)
	tarry.Handle(w, reminders, func(ctx context.Context, m *tarry.Message[Reminder]) error {
		r := m.Body
		r.Sent++
		fmt.Println("reminder", r.Sent, "of", r.Invoice)
		if r.Sent == 3 {
			stop()
			return nil
		}
		_, err := reminders.Push(ctx, c, r, tarry.In(10*time.Millisecond), tarry.Key(m.Key), tarry.ReplaceLeased(m.Token()))
		if err != nil {
			return err
		}
		return tarry.Settled()
	})
	if _, err := reminders.Push(ctx, c, Reminder{Invoice: "7"}, tarry.Key("7")); err != nil {
		fmt.Println(err)
	}
	fmt.Println(w.Run(ctx))
	// Output:
	// reminder 1 of 7
	// reminder 2 of 7
	// reminder 3 of 7
	// <nil>
}

// The merchant's server was down: what died of it is brought back.
func ExampleClient_RedriveWhere() {
	ctx := context.Background()
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	for _, reason := range []string{"timeout: merchant", "no such merchant", "timeout: merchant"} {
		if _, err := c.Push(ctx, "merchant.tell", nil); err != nil {
			fmt.Println(err)
		}
		got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"merchant.tell"}, Max: 1})
		if err != nil {
			fmt.Println(err)
		}
		if _, err := c.Settle(ctx, []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoBury, Reason: reason}}); err != nil {
			fmt.Println(err)
		}
	}

	n, err := c.RedriveWhere(ctx, tarry.Filter{
		Queue: "merchant.tell",
		From:  time.Now().Add(-2 * time.Hour), // died since
		Error: "timeout",
	})
	fmt.Println(n.Done, "redriven,", n.Skipped, "skipped", err)
	// Output:
	// 2 redriven, 0 skipped <nil>
}

// A handler that settles its message itself. Where the engine is a database this may be
// part of a transaction, together with what the handler has done.
func ExampleSettled() {
	ctx, stop := context.WithCancel(context.Background())
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()

	w := tarry.NewWorker(c, nil)
	tarry.Handle(w, Unpaid, func(ctx context.Context, m *tarry.Message[Order]) error {
		defer stop()
		fmt.Println("cancel order", m.Body.ID)
		if err := m.Settle(ctx, c, tarry.Settlement{Do: tarry.DoAck}); err != nil {
			return err
		}
		return tarry.Settled()
	})
	if _, err := Unpaid.Push(ctx, c, Order{"42"}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(w.Run(ctx))
	// Output:
	// cancel order 42
	// <nil>
}

func ExampleTopic_OnlyIf() {
	ctx, stop := context.WithCancel(context.Background())
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	paid := map[string]bool{"42": true}

	stillUnpaid := func(ctx context.Context, m *tarry.Message[Order]) (bool, error) {
		return !paid[m.Body.ID], nil
	}

	w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 1})
	tarry.Handle(w, Unpaid.OnlyIf(stillUnpaid), func(ctx context.Context, m *tarry.Message[Order]) error {
		fmt.Println("cancel order", m.Body.ID)
		stop()
		return nil
	})
	for _, id := range []string{"42", "43"} {
		if _, err := Unpaid.Push(ctx, c, Order{id}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(w.Run(ctx))
	// Output:
	// cancel order 43
	// <nil>
}
