package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/mysqlengine"
	"github.com/tarryhq/tarry/engine/pgengine"
)

// errNoDatabase is what a URL is that names none.
var errNoDatabase = errors.New("--messages is postgres://user@host/database or mysql://user@host:3306/database")

// openMessages opens what keeps the messages: the database of a URL, or, if that is "", a
// directory. It goes by the clock. A second process on a database would not be noticed.
func openMessages(ctx context.Context, of, dir string, now func() time.Time) (c *tarry.Client, closeAll func() error, err error) {
	if of == "" {
		eng, err := diskengine.Open(dir, &diskengine.Config{Now: now})
		if err != nil {
			return nil, nil, err
		}
		return tarry.New(eng, nil), eng.Close, nil
	}
	u, err := url.Parse(of)
	if err != nil {
		return nil, nil, errNoDatabase
	}
	switch u.Scheme {
	case "postgres", "postgresql":
		pool, err := pgxpool.New(ctx, of)
		if err != nil {
			return nil, nil, err
		}
		eng, err := pgengine.New(ctx, pool, &pgengine.Config{Migrate: true, Now: now})
		if err != nil {
			pool.Close()
			return nil, nil, err
		}
		return tarry.New(eng, nil), func() error {
			defer pool.Close()
			return eng.Close()
		}, nil
	case "mysql":
		cfg := mysql.NewConfig()
		cfg.User = u.User.Username()
		cfg.Passwd, _ = u.User.Password()
		cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.Trim(u.Path, "/")
		cfg.InterpolateParams, cfg.MultiStatements = true, true // fewer round trips
		connector, err := mysql.NewConnector(cfg)
		if err != nil {
			return nil, nil, err
		}
		db := sql.OpenDB(connector)
		eng, err := mysqlengine.New(ctx, db, &mysqlengine.Config{Migrate: true, Now: now})
		if err != nil {
			return nil, nil, errors.Join(err, db.Close())
		}
		return tarry.New(eng, nil), func() error { return errors.Join(eng.Close(), db.Close()) }, nil
	}
	return nil, nil, errNoDatabase
}
