package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tarryhq/tarry"
)

// Order is the body of a message.
type Order struct {
	ID string `json:"id"`
}

// Unpaid is the queue of the orders' timeouts, whose keys are the orders' ids. None of them
// is given up, however often the database fails.
var Unpaid = tarry.NewTopic[Order]("order.unpaid", tarry.MaxAttempts(1_000_000))

// A shop takes orders and payments.
type shop struct {
	db     database
	within time.Duration
	out    io.Writer
}

// What callers are told.
var (
	errExists   = errors.New("there is such an order")
	errNotOpen  = errors.New("there is no such order that is open")
	errNotFound = errors.New("there is no such order")
)

// place takes an order. The order and its timeout come into being together.
func (s *shop) place(ctx context.Context, id string) error {
	return s.db.in(ctx, func(tx tx) error {
		placed, err := tx.place(ctx, id)
		if err != nil {
			return err
		}
		if !placed {
			return errExists
		}
		_, err = Unpaid.Push(ctx, tx.messages, Order{id}, tarry.In(s.within), tarry.Key(id))
		return err
	})
}

// pay takes the payment of an order, and calls its timeout off.
func (s *shop) pay(ctx context.Context, id string) error {
	return s.db.in(ctx, func(tx tx) error {
		paid, err := tx.pay(ctx, id)
		if err != nil {
			return err
		}
		if !paid {
			return errNotOpen
		}
		err = Unpaid.Cancel(ctx, tx.messages, tarry.ByKey(id))
		if errors.Is(err, tarry.ErrLeased) {
			return nil // expire has it in hand, and will find the order paid
		}
		return err
	})
}

// expire handles a timeout. An order that was paid meanwhile stays as it is.
func (s *shop) expire(ctx context.Context, m *tarry.Message[Order]) error {
	cancelled := false
	err := s.db.in(ctx, func(tx tx) (err error) {
		if cancelled, err = tx.cancel(ctx, m.Body.ID); err != nil {
			return err
		}
		settled, err := tx.messages.Settle(ctx, []tarry.Settlement{{Token: m.Token(), Do: tarry.DoAck}})
		if err != nil {
			return err
		}
		return settled[0].Err
	})
	if err != nil {
		return err // it comes again
	}
	if cancelled {
		fmt.Fprintf(s.out, "order %s is cancelled: it was not paid within %s\n", m.Body.ID, s.within)
	}
	return tarry.Settled()
}
