package main

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/mysqlengine"
)

var mysqlStatements = statements{
	create: `CREATE TABLE IF NOT EXISTS checkout_order (
		id VARBINARY(1024) PRIMARY KEY, placed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, paid TIMESTAMP NULL, cancelled TIMESTAMP NULL)`,
	place:  `INSERT INTO checkout_order (id) VALUES (?) ON DUPLICATE KEY UPDATE id = id`,
	pay:    `UPDATE checkout_order SET paid = NOW() WHERE id = ? AND paid IS NULL AND cancelled IS NULL`,
	cancel: `UPDATE checkout_order SET cancelled = NOW() WHERE id = ? AND paid IS NULL AND cancelled IS NULL`,
	state: `SELECT CASE WHEN paid IS NOT NULL THEN 'paid' WHEN cancelled IS NOT NULL THEN 'cancelled' ELSE 'open' END
		FROM checkout_order WHERE id = ?`,
}

// mysqlPool is how many connections the shop has at most.
const mysqlPool = 16

type mySQL struct {
	db *sql.DB
	c  *tarry.Client
}

func openMySQL(ctx context.Context, u *url.URL) (database, error) {
	c, err := openClient(ctx, u)
	if err != nil {
		return nil, err
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.Trim(u.Path, "/")
	if u.Port() == "" {
		cfg.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	cfg.InterpolateParams, cfg.MultiStatements = true, true // a push is one round trip
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	m := &mySQL{sql.OpenDB(connector), c}
	m.db.SetMaxOpenConns(mysqlPool)
	m.db.SetMaxIdleConns(mysqlPool)
	if _, err := m.db.ExecContext(ctx, mysqlStatements.create); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *mySQL) in(ctx context.Context, do func(tx) error) error {
	t, err := m.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = t.Rollback() }() // it does nothing after the commit
	messages, err := mysqlengine.InTx(m.c, t)
	if err != nil {
		return err
	}
	err = do(tx{messages, &mysqlStatements, func(ctx context.Context, query string, args ...any) (int64, error) {
		r, err := t.ExecContext(ctx, query, args...)
		if err != nil {
			return 0, err
		}
		return r.RowsAffected()
	}})
	if err != nil {
		return err
	}
	return t.Commit()
}

func (m *mySQL) state(ctx context.Context, id string) (state string, err error) {
	err = m.db.QueryRowContext(ctx, mysqlStatements.state, id).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNotFound
	}
	return state, err
}

func (m *mySQL) client() *tarry.Client { return m.c }

func (m *mySQL) close() {
	_ = m.c.Close() // leases that it cannot give back lapse
	_ = m.db.Close()
}
