package pgengine

import (
	"context"
	"math"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

func (t *tx) messages(into *[]*sqlengine.Row, text string, lock sqlengine.Lock, args ...any) {
	t.read(text+locks[lock], func(r sqlengine.Scanner) error {
		row, err := sqlengine.ScanRow(r)
		if err == nil { // else the row may be nil, and callers look at rows before the error
			row.Key = keyOf(row.Key)
			*into = append(*into, row)
		}
		return err
	}, args...)
}

func (t *tx) ByID(ctx context.Context, ids []engine.ID, lock sqlengine.Lock, body bool) (rows []*sqlengine.Row, err error) {
	t.byID(&rows, ids, lock, body)
	return rows, t.send(ctx)
}

func (t *tx) byID(into *[]*sqlengine.Row, ids []engine.ID, lock sqlengine.Lock, body bool) {
	t.messages(into, t.sql.byID, lock, sqlengine.Numbers(ids), body)
}

func split(names []sqlengine.Name) (queues []int64, keys []string) {
	for _, n := range names {
		queues, keys = append(queues, n.Queue), append(keys, keyText(n.Key))
	}
	return queues, keys
}

func (t *tx) ByKey(ctx context.Context, names []sqlengine.Name, lock sqlengine.Lock, body bool) (rows []*sqlengine.Row, memories []sqlengine.Memory, err error) {
	t.byKey(&rows, &memories, names, lock, body)
	return rows, memories, t.send(ctx)
}

func (t *tx) byKey(into *[]*sqlengine.Row, memories *[]sqlengine.Memory, names []sqlengine.Name, lock sqlengine.Lock, body bool) {
	queues, keys := split(names)
	t.messages(into, t.sql.byKey, lock, queues, keys, body)
	t.memories(memories, t.sql.remembered+locks[lock], queues, keys)
}

func (t *tx) Ended(ctx context.Context, name sqlengine.Name, died, finished int64) (rows []*sqlengine.Row, err error) {
	key := keyText(name.Key)
	t.messages(&rows, t.sql.ended, sqlengine.None, name.Queue, key, int16(sqlengine.Dead), died, true)
	t.messages(&rows, t.sql.ended, sqlengine.None, name.Queue, key, int16(sqlengine.Finished), finished, true)
	return rows, t.send(ctx)
}

func (t *tx) Ranges(ctx context.Context, ranges []sqlengine.Range) ([][]*sqlengine.Row, error) {
	found := t.ranges(ranges)
	return found, t.send(ctx)
}

// ranges queues queries for ranges. The next send fills in the returned rows.
func (t *tx) ranges(ranges []sqlengine.Range) [][]*sqlengine.Row {
	found := make([][]*sqlengine.Row, len(ranges))
	for i, r := range ranges {
		high := &r.Span.High.At
		if r.Due {
			high = nil
		}
		args := []any{r.Queue, int16(r.Kind), r.Span.Low.At, idBound(r.Span.Low.ID), high, idBound(r.Span.High.ID), r.Most, r.Body}
		text := t.sql.forward
		switch {
		case r.Window > 0:
			text, args = t.sql.ranked, append(args, r.Window, r.Most+r.Spare)
		case r.Newest:
			text = t.sql.backward
		}
		t.messages(&found[i], text, r.Lock, args...)
	}
	return found
}

// idBound converts an id used as a bound. No real id exceeds the maximum.
func idBound(id engine.ID) int64 { return int64(min(id, math.MaxInt64)) }

func (t *tx) Holding(ctx context.Context, queue, ms int64) (n int64, err error) {
	t.read(t.sql.holding, func(r sqlengine.Scanner) error { return r.Scan(&n) }, queue, ms)
	return n, t.send(ctx)
}

func (t *tx) Bodies(ctx context.Context, rows []*sqlengine.Row) error {
	t.read(t.sql.bodies, sqlengine.ScanBody(rows), sqlengine.IDs(rows))
	return t.send(ctx)
}

// column returns a column of messages, which is sent as an array.
func column[T any](rows []*sqlengine.Row, of func(m *sqlengine.Row) T) []T {
	values := make([]T, len(rows))
	for i, m := range rows {
		values[i] = of(m)
	}
	return values
}

func queueOf(m *sqlengine.Row) int64  { return m.Queue }
func textOf(m *sqlengine.Row) *string { return orNull(keyText(m.Key)) }
func dueOf(m *sqlengine.Row) int64    { return m.Due }

func expiresOf(m *sqlengine.Row) *int64 {
	if m.Expires == math.MaxInt64 {
		return nil
	}
	return &m.Expires
}

// states returns the columns that change with the state.
func states(rows []*sqlengine.Row) []any {
	return []any{
		sqlengine.IDs(rows),
		column(rows, func(m *sqlengine.Row) int16 { return int16(m.Kind) }),
		column(rows, func(m *sqlengine.Row) int64 { return m.Ends }),
		column(rows, dueOf),
		column(rows, expiresOf),
		column(rows, func(m *sqlengine.Row) int64 { return int64(m.Attempt) }),
		column(rows, func(m *sqlengine.Row) []byte {
			if m.Nonce == nil {
				return nil
			}
			return m.Nonce[:]
		}),
		column(rows, func(m *sqlengine.Row) *string { return orNull(m.Worker) }),
		column(rows, func(m *sqlengine.Row) []byte { return m.Failures }),
	}
}

func priorityOf(m *sqlengine.Row) int64 { return int64(m.Policy.Priority) }
func policyOf(m *sqlengine.Row) []byte  { return codec.AppendPolicy(nil, &m.Policy) }

// contents returns the columns of the policy and the content.
func contents(rows []*sqlengine.Row) []any {
	return []any{
		column(rows, priorityOf),
		column(rows, policyOf),
		column(rows, func(m *sqlengine.Row) []byte { return sqlengine.MetaOf(&m.Content) }),
		column(rows, func(m *sqlengine.Row) []byte { return m.Content.Body }),
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// pageBytes bounds the bodies in one statement, unless one body has more: the server holds
// several copies of them, and takes at most 1 GiB.
const pageBytes = 8 << 20

// pages runs write on pages of rows. It sends each page before it makes the next.
func (t *tx) pages(ctx context.Context, rows []*sqlengine.Row, write func(page []*sqlengine.Row)) {
	for len(rows) > 0 {
		n, bytes := 0, 0
		for n < len(rows) && (n == 0 || bytes+len(rows[n].Content.Body) <= pageBytes) {
			bytes += len(rows[n].Content.Body)
			n++
		}
		write(rows[:n])
		if rows = rows[n:]; len(rows) > 0 {
			_ = t.send(ctx) // the next send reports its error
		}
	}
}

func (t *tx) Insert(ctx context.Context, rows []*sqlengine.Row) {
	t.pages(ctx, rows, func(page []*sqlengine.Row) {
		args := []any{sqlengine.IDs(page), column(page, queueOf), column(page, textOf), column(page, dueOf), engine.DefaultPriority, rows[0].Created, column(page, expiresOf)}
		t.write(t.sql.insert, append(args, contents(page)...)...)
	})
	var queues []int64
	var keys []string
	for _, m := range rows {
		if m.Key != "" {
			queues, keys = append(queues, m.Queue), append(keys, keyText(m.Key))
		}
	}
	// The transaction holds the keys by now, so it sees memories that others have left.
	t.writeAll(len(keys), t.sql.check, queues, keys)
}

func (t *tx) Finish(_ context.Context, ids []engine.ID, ended int64, how engine.Ending, by string) {
	t.writeAll(len(ids), t.sql.finish, sqlengine.Numbers(ids), ended, int16(how), orNull(by))
}

func (t *tx) Move(_ context.Context, rows []*sqlengine.Row) {
	if len(rows) == 0 {
		return
	}
	t.write(t.sql.move, states(rows)...)
}

func (t *tx) Rank(_ context.Context, rows []*sqlengine.Row) {
	t.writeAll(len(rows), t.sql.rank, sqlengine.IDs(rows), column(rows, priorityOf), column(rows, policyOf))
}

func (t *tx) Replace(ctx context.Context, rows []*sqlengine.Row) {
	t.pages(ctx, rows, func(page []*sqlengine.Row) {
		t.write(t.sql.replace, append(states(page), contents(page)...)...)
	})
}

func (t *tx) Delete(_ context.Context, ids []engine.ID) {
	t.writeAll(len(ids), t.sql.remove, sqlengine.Numbers(ids))
}
