package source

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/storeurl"
)

// dsnOf returns the data source of a URL of MySQL. Times without a zone are UTC.
func dsnOf(u *url.URL) string {
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr = "tcp", storeurl.Address(u.Host, "3306")
	cfg.DBName, cfg.TLSConfig = strings.Trim(u.Path, "/"), u.Query().Get("tls")
	cfg.ParseTime, cfg.InterpolateParams, cfg.ClientFoundRows = true, true, true
	cfg.Params = map[string]string{"time_zone": "'+00:00'"}
	return cfg.FormatDSN()
}

// Table is a table with a row for each message of a queue. Columns may be any expressions of
// SQL.
type Table struct {
	Table, Queue string

	ID    string // unique, and has an order
	Due   string // a time, UTC where it has no zone
	Body  string
	Key   string // "": the ID
	Where string // which rows wait; "": all
	Mark  string // what Remove sets, such as state = 'moved'; "": it deletes rows

	db     *sql.DB
	params [2]string
	last   []any // the ID of the last row that was read, if there was one
}

// Open connects to the PostgreSQL, MySQL or MariaDB of a URL, and returns the waiting rows as a
// source. The options of PostgreSQL are those of libpq; MySQL has tls=true.
func (t *Table) Open(ctx context.Context, u *url.URL) (all []Source, done func(), err error) {
	driver, dsn := "pgx", u.String()
	t.params = [2]string{"$1", "$2"}
	if u.Scheme == "mysql" {
		driver, dsn, t.params = "mysql", dsnOf(u), [2]string{"?", "?"}
	}
	t.db, err = sql.Open(driver, dsn)
	if err != nil || driver == "pgx" && !strings.HasPrefix(u.Scheme, "postgres") { // its text may hold a password
		return nil, nil, engine.Invalid("open", engine.Ref{}, "the database to copy from is like postgres://user@host/database or mysql://user@host/database")
	}
	if err := t.db.PingContext(ctx); err != nil {
		return nil, nil, unreached(u, err)
	}
	t.Key, t.Where = cmp.Or(t.Key, t.ID), "("+cmp.Or(t.Where, "TRUE")+")"
	return []Source{t}, func() { _ = t.db.Close() }, nil
}

// Name returns the name of the table.
func (t *Table) Name() string { return t.Table }

// Next reads on in the order of IDs.
func (t *Table) Next(ctx context.Context) (all []Entry, err error) {
	where := t.Where
	if len(t.last) > 0 {
		where += " AND " + t.ID + " > " + t.params[0]
	}
	rows, err := t.db.QueryContext(ctx, fmt.Sprintf("SELECT %s, %s, %s, %s FROM %s WHERE %s ORDER BY %s LIMIT %d",
		t.ID, t.Due, t.Body, t.Key, t.Table, where, t.ID, page), t.last...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, key any
		var due sql.NullTime
		var body []byte
		if err := rows.Scan(&id, &due, &body, &key); err != nil {
			return nil, err
		}
		id = plain(id)
		e := Entry{ID: fmt.Sprint(id), was: id}
		e.Queue, e.Body, e.Due.At, e.Key = t.Queue, body, due.Time, keyFor(fmt.Sprint(plain(key)))
		if key == nil || !due.Valid {
			e.Err = fmt.Errorf("%s or %s is null", t.Due, t.Key)
		}
		all, t.last = append(all, e), []any{id}
	}
	return all, rows.Err()
}

// Remove removes each row that still waits, with the same due time. A poller has taken it
// before, or finds it gone.
func (t *Table) Remove(ctx context.Context, entries []Entry) ([]bool, error) {
	tx, err := t.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	change := "DELETE FROM " + t.Table
	if t.Mark != "" {
		change = "UPDATE " + t.Table + " SET " + t.Mark
	}
	change += fmt.Sprintf(" WHERE %s AND %s = %s AND %s = %s", t.Where, t.ID, t.params[0], t.Due, t.params[1])
	removed := make([]bool, len(entries))
	for i, e := range entries {
		result, err := tx.ExecContext(ctx, change, e.was, e.Due.At)
		if err != nil {
			return nil, err
		}
		n, _ := result.RowsAffected() // neither driver fails
		removed[i] = n == 1
	}
	return removed, tx.Commit()
}

// plain returns a text of MySQL's as a string. Its driver gives bytes, which as a parameter
// would be compared without the column's collation.
func plain(v any) any {
	if b, ok := v.([]byte); ok && utf8.Valid(b) {
		return string(b)
	}
	return v
}
