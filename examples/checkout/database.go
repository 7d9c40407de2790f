package main

import (
	"context"
	"errors"
	"net/url"

	"github.com/tarryhq/tarry"
)

// A database holds the orders, and the messages beside them.
type database interface {
	// in runs do in a transaction, and commits it if do returns nil.
	in(ctx context.Context, do func(tx) error) error
	// state is open, paid or cancelled; errNotFound.
	state(ctx context.Context, id string) (string, error)
	// client is for what is part of no transaction.
	client() *tarry.Client
	close()
}

// tx is a transaction. What the client messages pushes, cancels and settles is part of it.
type tx struct {
	messages *tarry.Client
	say      *statements
	exec     func(ctx context.Context, query string, args ...any) (changed int64, err error)
}

// statements are those about the shop's own table.
type statements struct{ create, place, pay, cancel, state string }

// place writes an order; false: there is one.
func (t tx) place(ctx context.Context, id string) (bool, error) {
	return t.change(ctx, t.say.place, id)
}

// pay marks an open order paid; false: there is none.
func (t tx) pay(ctx context.Context, id string) (bool, error) { return t.change(ctx, t.say.pay, id) }

// cancel marks an open order cancelled; false: there is none.
func (t tx) cancel(ctx context.Context, id string) (bool, error) {
	return t.change(ctx, t.say.cancel, id)
}

func (t tx) change(ctx context.Context, query, id string) (bool, error) {
	n, err := t.exec(ctx, query, id)
	return n > 0, err
}

// open opens the database of a URL, and makes the tables that are missing.
func open(ctx context.Context, of string) (database, error) {
	u, err := url.Parse(of)
	if err != nil {
		return nil, errors.New("--db is no URL")
	}
	switch u.Scheme {
	case "postgres", "postgresql":
		return openPostgres(ctx, u)
	case "mysql":
		return openMySQL(ctx, u)
	}
	return nil, errors.New("--db begins with postgres:// or mysql://")
}

// openClient opens a client of the messages in the database of a URL. It has connections
// of its own: a push in a transaction may need one more while that is held.
func openClient(ctx context.Context, u *url.URL) (*tarry.Client, error) {
	with := *u
	options := with.Query()
	options.Set("migrate", "true")
	with.RawQuery = options.Encode()
	return tarry.Open(ctx, with.String(), nil)
}
