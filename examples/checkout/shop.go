package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/pgengine"
)

// Order is the body of a message.
type Order struct {
	ID string `json:"id"`
}

// Unpaid is the queue of the orders' timeouts. The key of a timeout is the id of its order.
// MaxAttempts is so large that no timeout dies, however often the database fails.
var Unpaid = tarry.NewTopic[Order]("order.unpaid", tarry.MaxAttempts(tarry.MaxMaxAttempts))

// A shop takes orders and payments.
type shop struct {
	pool     *pgxpool.Pool
	messages *tarry.Client // not in a transaction
	within   time.Duration
	out      io.Writer
}

const (
	createTable = `CREATE TABLE IF NOT EXISTS checkout_order (
		id text PRIMARY KEY, placed timestamptz NOT NULL DEFAULT now(), paid timestamptz, cancelled timestamptz)`
	placeOrder  = `INSERT INTO checkout_order (id) VALUES ($1) ON CONFLICT DO NOTHING`
	payOrder    = `UPDATE checkout_order SET paid = now() WHERE id = $1 AND paid IS NULL AND cancelled IS NULL`
	cancelOrder = `UPDATE checkout_order SET cancelled = now() WHERE id = $1 AND paid IS NULL AND cancelled IS NULL`
	orderState  = `SELECT CASE WHEN paid IS NOT NULL THEN 'paid' WHEN cancelled IS NOT NULL THEN 'cancelled' ELSE 'open' END
		FROM checkout_order WHERE id = $1`
)

// The errors that callers see.
var (
	errExists   = errors.New("this order exists already")
	errNotOpen  = errors.New("there is no open order with this id")
	errNotFound = errors.New("there is no order with this id")
)

// open opens the database of a URL, and creates missing tables. The messages have connections
// of their own, since a push in a transaction may need another connection.
func open(ctx context.Context, rawURL string) (*shop, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("--db is not a URL")
	}
	options := u.Query()
	options.Set("migrate", "true")
	u.RawQuery = options.Encode()
	messages, err := tarry.Open(ctx, u.String(), nil)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, rawURL)
	if err != nil {
		return nil, errors.Join(err, messages.Close())
	}
	s := &shop{pool: pool, messages: messages}
	// When programs start at the same time, the lock lets one make the table.
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('checkout_order'))"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, createTable)
		return err
	})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *shop) close() {
	_ = s.messages.Close() // leases that it cannot give back lapse
	s.pool.Close()
}

// inTx runs do in a transaction, and commits it if do returns nil. Pushes, cancels and
// settlements with c are part of the transaction. On MySQL, use mysqlengine.InTx with a
// *sql.Tx.
func (s *shop) inTx(ctx context.Context, do func(tx pgx.Tx, c *tarry.Client) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		c, err := pgengine.InTx(s.messages, tx)
		if err != nil {
			return err
		}
		return do(tx, c)
	})
}

// place takes an order: it writes the order and pushes its timeout.
func (s *shop) place(ctx context.Context, id string) error {
	return s.inTx(ctx, func(tx pgx.Tx, c *tarry.Client) error {
		placed, err := tx.Exec(ctx, placeOrder, id)
		if err != nil {
			return err
		}
		if placed.RowsAffected() == 0 {
			return errExists
		}
		_, err = Unpaid.Push(ctx, c, Order{id}, tarry.In(s.within), tarry.Key(id))
		return err
	})
}

// pay takes the payment of an order, and calls its timeout off.
func (s *shop) pay(ctx context.Context, id string) error {
	return s.inTx(ctx, func(tx pgx.Tx, c *tarry.Client) error {
		paid, err := tx.Exec(ctx, payOrder, id)
		if err != nil {
			return err
		}
		if paid.RowsAffected() == 0 {
			return errNotOpen
		}
		err = Unpaid.Cancel(ctx, c, tarry.ByKey(id))
		if errors.Is(err, tarry.ErrLeased) {
			return nil // expire is running, and will find the order paid
		}
		return err
	})
}

// expire handles a timeout. An order that was paid meanwhile stays as it is.
func (s *shop) expire(ctx context.Context, m *tarry.Message[Order]) error {
	var cancelled int64
	err := s.inTx(ctx, func(tx pgx.Tx, c *tarry.Client) error {
		changed, err := tx.Exec(ctx, cancelOrder, m.Body.ID)
		if err != nil {
			return err
		}
		cancelled = changed.RowsAffected()
		return m.Settle(ctx, c, tarry.Settlement{Do: tarry.DoAck})
	})
	if err != nil {
		return err // the timeout is retried
	}
	if cancelled > 0 {
		fmt.Fprintf(s.out, "order %s is cancelled: it was not paid within %s\n", m.Body.ID, s.within)
	}
	return tarry.Settled()
}

// state returns open, paid or cancelled.
func (s *shop) state(ctx context.Context, id string) (state string, err error) {
	err = s.pool.QueryRow(ctx, orderState, id).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNotFound
	}
	return state, err
}
