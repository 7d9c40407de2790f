package mysqlengine

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// The most values in a list, and the most rows in a statement. MariaDB turns lists of 1000
// values into a table.
const (
	listMost = 500
	rowsMost = 1000
)

// rowUsual is the usual length of a row's text without key and body.
const rowUsual = 128

// messages queues a query for messages; text follows the columns.
func (t *tx) messages(ctx context.Context, into *[]*sqlengine.Row, body bool, lock sqlengine.Lock, text string, values ...any) {
	t.read(ctx, locking(lock, columns+bodies[body]+" "+text, values...), func(r sqlengine.Scanner) error {
		row, err := sqlengine.ScanRow(r)
		if err == nil { // else the row may be nil, and callers look at rows before the error
			*into = append(*into, row)
		}
		return err
	})
}

func (t *tx) ByID(ctx context.Context, ids []engine.ID, lock sqlengine.Lock, body bool) (rows []*sqlengine.Row, err error) {
	t.byID(ctx, &rows, ids, lock, body)
	return rows, t.send(ctx)
}

func (t *tx) byID(ctx context.Context, into *[]*sqlengine.Row, ids []engine.ID, lock sqlengine.Lock, body bool) {
	for some := range slices.Chunk(sqlengine.Numbers(ids), listMost) {
		t.messages(ctx, into, body, lock, t.sql.byID, some)
	}
}

func (t *tx) ByKey(ctx context.Context, names []sqlengine.Name, lock sqlengine.Lock, body bool) (rows []*sqlengine.Row, memories []sqlengine.Memory, err error) {
	t.byKey(ctx, &rows, names, lock, body)
	t.remembered(ctx, &memories, names, lock)
	return rows, memories, t.send(ctx)
}

func (t *tx) byKey(ctx context.Context, into *[]*sqlengine.Row, names []sqlengine.Name, lock sqlengine.Lock, body bool) {
	byQueue(names, func(queue int64, keys []string) { t.messages(ctx, into, body, lock, t.sql.byKey, queue, keys) })
}

// remembered queues the queries for memories of keys. It leaves out queues without memories,
// which are most: for the server, reading the list of keys costs as much as the look-up.
func (t *tx) remembered(ctx context.Context, into *[]sqlengine.Memory, names []sqlengine.Name, lock sqlengine.Lock) {
	byQueue(names, func(queue int64, keys []string) {
		if t.remembers[queue] {
			t.memories(ctx, into, locking(lock, t.sql.remembered, queue, keys))
		}
	})
}

func (t *tx) Ended(ctx context.Context, name sqlengine.Name, died, finished int64) (rows []*sqlengine.Row, err error) {
	t.messages(ctx, &rows, true, sqlengine.None, t.sql.lastDead, name.Queue, name.Key, grave(died, 0))
	t.messages(ctx, &rows, true, sqlengine.None, t.sql.lastFinished, name.Queue, name.Key, -grave(finished, 0))
	return rows, t.send(ctx)
}

func (t *tx) Ranges(ctx context.Context, ranges []sqlengine.Range) (found [][]*sqlengine.Row, err error) {
	again := t.ranges(ctx, ranges, &found)
	if err := t.send(ctx); err != nil {
		return nil, err
	}
	return found, again()
}

// ranges queues queries for ranges. After the next send, again must be called. Then found is
// complete.
func (t *tx) ranges(ctx context.Context, ranges []sqlengine.Range, found *[][]*sqlengine.Row) (again func() error) {
	*found = make([][]*sqlengine.Row, len(ranges))
	best := make([][]int64, len(ranges))
	for i, r := range ranges {
		text, values := within(&r)
		values = append([]any{r.Queue, r.Queue, int64(r.Kind), int64(r.Kind)}, values...)
		if r.Window > 0 {
			// An index finds the first rows by priority, without locks.
			text = t.sql.ranked + text + " ORDER BY m.queue, m.kind, m.ends, m.id LIMIT ?) w ORDER BY priority, ends, id LIMIT ?"
			t.read(ctx, newStatement(text, append(values, r.Window, r.Most+r.Spare)...), func(r sqlengine.Scanner) error {
				var id int64
				err := r.Scan(&id)
				best[i] = append(best[i], id)
				return err
			})
		} else {
			order := " ORDER BY m.queue, m.kind, m.ends, m.id LIMIT ?"
			if r.Newest {
				order = " ORDER BY m.queue DESC, m.kind DESC, m.ends DESC, m.id DESC LIMIT ?"
			}
			t.messages(ctx, &(*found)[i], r.Body, r.Lock, t.sql.span+text+order, append(values, r.Most)...)
		}
	}
	return func() error {
		for more := true; more; {
			more = false
			for i, r := range ranges {
				some := best[i][:min(len(best[i]), listMost)]
				if len(some) == 0 || len((*found)[i]) >= r.Most {
					continue
				}
				more, best[i] = true, best[i][len(some):]
				slices.Sort(some)
				text, values := within(&r)
				values = append([]any{some, r.Queue, int64(r.Kind)}, values...)
				t.messages(ctx, &(*found)[i], r.Body, r.Lock, t.sql.again+text+" ORDER BY m.id", values...)
			}
			if err := t.send(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// within returns a condition for rows with places in a range, in a form that the database
// turns into a range of an index.
func within(r *sqlengine.Range) (text string, values []any) {
	s := &r.Span
	text, values = " AND m.ends >= ?", []any{s.Low.At}
	if id := idBound(s.Low.ID); id > 0 {
		text += " AND (m.ends > ? OR m.id >= ?)"
		values = append(values, s.Low.At, id)
	}
	if r.Due {
		return text + " AND m.ends <= " + now + " DIV 1000", values
	}
	id := idBound(s.High.ID)
	if id == 0 {
		return text + " AND m.ends < ?", append(values, s.High.At)
	}
	return text + " AND m.ends <= ? AND (m.ends < ? OR m.id < ?)", append(values, s.High.At, s.High.At, id)
}

// idBound converts an id used as a bound. No real id exceeds the maximum.
func idBound(id engine.ID) int64 { return int64(min(id, math.MaxInt64)) }

func (t *tx) Holding(ctx context.Context, queue, ms int64) (n int64, err error) {
	t.read(ctx, newStatement(t.sql.holding, queue, queue, ms), func(r sqlengine.Scanner) error { return r.Scan(&n) })
	return n, t.send(ctx)
}

func (t *tx) Bodies(ctx context.Context, rows []*sqlengine.Row) error {
	scan := sqlengine.ScanBody(rows)
	for some := range slices.Chunk(sqlengine.IDs(rows), listMost) {
		t.read(ctx, newStatement(t.sql.bodies, some), scan)
	}
	return t.send(ctx)
}

// inserted lists the columns that usually have their default in new messages; nil: the
// default. Leaving a column out saves the server time.
var inserted = []struct {
	name string
	of   func(*sqlengine.Row) any
}{
	{"kind", func(m *sqlengine.Row) any { return orDefault(int64(m.Kind), int64(sqlengine.Waiting)) }},
	{"due", func(m *sqlengine.Row) any { return orDefault(m.Due, m.Ends) }},
	{"expires", expiresOf},
	{"priority", func(m *sqlengine.Row) any { return orDefault(int64(m.Policy.Priority), codec.UsualPriority) }},
	{"policy", func(m *sqlengine.Row) any {
		p := codec.AppendPolicy(nil, &m.Policy)
		if bytes.Equal(p, usualPolicy) {
			return nil
		}
		return p
	}},
	{"meta", func(m *sqlengine.Row) any { return orNull(sqlengine.MetaOf(&m.Content)) }},
	{"large", func(m *sqlengine.Row) any { _, large := bodyOf(m); return large }},
}

// usualPolicy is the default of its column.
var usualPolicy = []byte{0}

// orDefault returns nil for a default.
func orDefault(v, usual int64) any {
	if v == usual {
		return nil
	}
	return v
}

// Insert takes the keys first. After that the transaction sees memories that others have
// left.
func (t *tx) Insert(ctx context.Context, rows []*sqlengine.Row) {
	insert := t.sql.insert
	var others []func(*sqlengine.Row) any
	for _, c := range inserted {
		if slices.ContainsFunc(rows, func(m *sqlengine.Row) bool { return c.of(m) != nil }) {
			insert += ", " + c.name
			others = append(others, c.of)
		}
	}
	insert += ") VALUES "
	room := make([]any, 0, 7+len(others))
	t.writeRows(ctx, insert, "", rows, func(s *statement, i int, m *sqlengine.Row) {
		body, _ := bodyOf(m)
		values := append(room[:0], int64(m.ID), m.Queue, orNull(m.Key), m.Ends, m.Created, m.Size, body)
		for _, of := range others {
			if v := of(m); v != nil {
				values = append(values, v)
			} else {
				values = append(values, byDefault)
			}
		}
		s.row(i, values...)
	})
	var names []sqlengine.Name
	for _, m := range rows {
		if m.Key != "" {
			names = append(names, sqlengine.Name{Queue: m.Queue, Key: m.Key})
		}
	}
	byQueue(names, func(queue int64, keys []string) {
		if t.remembers[queue] {
			t.read(ctx, newStatement(t.sql.check, queue, keys), nil)
		} else {
			t.read(ctx, newStatement(t.sql.plain, queue), nil)
		}
	})
}

func (t *tx) Finish(ctx context.Context, ids []engine.ID, ended int64, how engine.Ending, by string) {
	at, key := any(word("ends")), word("grave")
	if ended != math.MaxInt64 {
		at, key = ended, word(fmt.Sprintf("IF(`key` IS NULL, 0, %d - id %% %d)", -grave(ended, 0), 1<<graveBits))
	}
	for some := range slices.Chunk(sqlengine.Numbers(ids), listMost) {
		t.write(ctx, newStatement(t.sql.finish, at, key, int64(how), orNull(by), some))
	}
}

func (t *tx) Move(ctx context.Context, rows []*sqlengine.Row) {
	t.writeRows(ctx, t.sql.move, onMove, rows, func(s *statement, i int, m *sqlengine.Row) {
		s.row(i, int64(m.ID), int64(m.Kind), graveOf(m), m.Ends, m.Due, expiresOf(m), int64(m.Attempt), nonceOf(m), orNull(m.Worker), orNull(m.Failures))
	})
}

func (t *tx) Rank(ctx context.Context, rows []*sqlengine.Row) {
	t.writeRows(ctx, t.sql.rank, onRank, rows, func(s *statement, i int, m *sqlengine.Row) {
		s.row(i, int64(m.ID), m.Ends, int64(m.Policy.Priority), codec.AppendPolicy(nil, &m.Policy))
	})
}

func (t *tx) Replace(ctx context.Context, rows []*sqlengine.Row) {
	t.writeRows(ctx, t.sql.replace, onReplace, rows, func(s *statement, i int, m *sqlengine.Row) {
		body, large := bodyOf(m)
		s.row(i, int64(m.ID), int64(m.Kind), graveOf(m), m.Ends, m.Due, expiresOf(m), int64(m.Attempt), nonceOf(m), orNull(m.Worker), orNull(m.Failures),
			int64(m.Policy.Priority), codec.AppendPolicy(nil, &m.Policy), m.Size, orNull(sqlengine.MetaOf(&m.Content)), body, large)
	})
}

// writeRows writes rows by statements with a beginning and an end, each as long as the server
// allows.
func (t *tx) writeRows(ctx context.Context, first, last string, rows []*sqlengine.Row, row func(s *statement, i int, m *sqlengine.Row)) {
	if len(rows) == 0 {
		return
	}
	room := len(first)
	for _, m := range rows {
		room += rowUsual + len(m.Key) + len(m.Content.Body)
	}
	s, n := newStatement(first), 0
	s.text = slices.Grow(s.text, min(room, t.packet))
	for _, m := range rows {
		if n == rowsMost || n > 0 && s.bytes()+2*len(m.Content.Body)+rowBytes > t.packet {
			t.write(ctx, s.end(last))
			s, n = newStatement(first), 0
		}
		row(s, n, m)
		n++
	}
	t.write(ctx, s.end(last))
}

func (t *tx) Delete(ctx context.Context, ids []engine.ID) {
	for some := range slices.Chunk(sqlengine.Numbers(ids), listMost) {
		t.write(ctx, newStatement(t.sql.remove, some, len(some)))
	}
}

// orNull returns a text, or nil if it is empty.
func orNull[T string | []byte](s T) any {
	if len(s) == 0 {
		return nil
	}
	return s
}

// graveOf returns the column grave of a message: 0 while it holds its key. Dead messages have
// values in the order of their deaths, which keeps their keys free. Finished ones have negative
// ones, so that each kind has a newest.
func graveOf(m *sqlengine.Row) int64 {
	switch m.Kind {
	case sqlengine.Dead:
		return grave(m.Ends, m.ID)
	case sqlengine.Finished:
		return -grave(m.Ends, m.ID)
	}
	return 0
}

// graveBits is how many bits of the id distinguish messages that ended in the same
// millisecond.
const graveBits = 15

// grave is the value for an end up to the year 9999.
func grave(ended int64, id engine.ID) int64 {
	return max(1, min(max(0, ended), 1<<(63-graveBits)-1)<<graveBits|int64(id)&(1<<graveBits-1))
}

func expiresOf(m *sqlengine.Row) any {
	if m.Expires == math.MaxInt64 {
		return nil
	}
	return m.Expires
}

func nonceOf(m *sqlengine.Row) any {
	if m.Nonce == nil {
		return nil
	}
	return m.Nonce[:]
}

// bodyOf returns the body in the column for its size.
func bodyOf(m *sqlengine.Row) (body, large any) {
	switch {
	case m.Content.Body == nil:
		return nil, nil
	case len(m.Content.Body) > sqlengine.InlineBody:
		return nil, m.Content.Body
	}
	return m.Content.Body, nil
}
