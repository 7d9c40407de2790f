package main

import (
	"context"
	"errors"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/pgengine"
)

var postgresStatements = statements{
	create: `CREATE TABLE IF NOT EXISTS checkout_order (
		id text PRIMARY KEY, placed timestamptz NOT NULL DEFAULT now(), paid timestamptz, cancelled timestamptz)`,
	place:  `INSERT INTO checkout_order (id) VALUES ($1) ON CONFLICT DO NOTHING`,
	pay:    `UPDATE checkout_order SET paid = now() WHERE id = $1 AND paid IS NULL AND cancelled IS NULL`,
	cancel: `UPDATE checkout_order SET cancelled = now() WHERE id = $1 AND paid IS NULL AND cancelled IS NULL`,
	state: `SELECT CASE WHEN paid IS NOT NULL THEN 'paid' WHEN cancelled IS NOT NULL THEN 'cancelled' ELSE 'open' END
		FROM checkout_order WHERE id = $1`,
}

type postgres struct {
	pool *pgxpool.Pool
	c    *tarry.Client
}

func openPostgres(ctx context.Context, u *url.URL) (database, error) {
	c, err := openClient(ctx, u)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, u.String())
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	p := &postgres{pool, c}
	// Of programs that start at once one makes the table.
	err = pgx.BeginFunc(ctx, pool, func(t pgx.Tx) error {
		if _, err := t.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('checkout_order'))"); err != nil {
			return err
		}
		_, err := t.Exec(ctx, postgresStatements.create)
		return err
	})
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *postgres) in(ctx context.Context, do func(tx) error) error {
	return pgx.BeginFunc(ctx, p.pool, func(t pgx.Tx) error {
		messages, err := pgengine.InTx(p.c, t)
		if err != nil {
			return err
		}
		return do(tx{messages, &postgresStatements, func(ctx context.Context, query string, args ...any) (int64, error) {
			tag, err := t.Exec(ctx, query, args...)
			return tag.RowsAffected(), err
		}})
	})
}

func (p *postgres) state(ctx context.Context, id string) (state string, err error) {
	err = p.pool.QueryRow(ctx, postgresStatements.state, id).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNotFound
	}
	return state, err
}

func (p *postgres) client() *tarry.Client { return p.c }

func (p *postgres) close() {
	_ = p.c.Close() // leases that it cannot give back lapse
	p.pool.Close()
}
