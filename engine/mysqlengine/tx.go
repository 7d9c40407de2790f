package mysqlengine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine/internal/rules"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// querier is a connection, a pool, or a caller's transaction.
type querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
}

// tx is a transaction. Its beginning and its writes wait until it reads or commits, or until
// they are as large as one packet may be. Then they go in one round trip.
type tx struct {
	querier
	*store
	waiting []*statement
	bytes   int
	err     error // of an earlier send: nothing more is sent

	timeout   sqlengine.LockTimeout
	remembers map[int64]bool // queues that may have memories
}

// write queues a statement without an answer.
func (t *tx) write(ctx context.Context, s *statement) {
	n := s.bytes()
	if len(t.waiting) > 0 && t.bytes+n > t.packet {
		_ = t.send(ctx) // the next send reports its error
	}
	t.waiting = append(t.waiting, s)
	t.bytes += n
}

// read queues a statement and passes its rows to scan; nil: they are skipped.
func (t *tx) read(ctx context.Context, s *statement, scan func(sqlengine.Scanner) error) {
	s.reads, s.scan = true, scan
	t.write(ctx, s)
}

// send sends the queued statements. After an error it returns that error.
func (t *tx) send(ctx context.Context) error {
	all := t.waiting
	t.waiting, t.bytes = nil, 0
	each := 1
	if t.several {
		each = max(1, len(all))
	}
	for some := range slices.Chunk(all, each) {
		if t.err == nil {
			t.err = t.carryOut(ctx, some)
		}
	}
	return t.err
}

// errShort means that a server answered fewer statements than it was sent.
var errShort = errors.New("the server left out an answer")

// carryOut sends statements in one round trip.
func (t *tx) carryOut(ctx context.Context, all []*statement) error {
	var text strings.Builder
	var args []any
	size, seen := 0, false
	for _, s := range all {
		size += len(s.text) + 1
		seen = seen || s.scan != nil
	}
	text.Grow(size)
	for i, s := range all {
		if i > 0 {
			text.WriteByte(';')
		}
		text.Write(s.text)
		args = append(args, s.args...)
	}
	defer t.connections.Trips.Since(time.Now())
	if !seen { // cheaper, and it reports the errors of all statements
		_, err := t.ExecContext(ctx, text.String(), args...)
		return err
	}
	rows, err := t.QueryContext(ctx, text.String(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	answers := 0
	for _, s := range all {
		if !s.reads {
			continue
		}
		if answers++; answers > 1 && !rows.NextResultSet() {
			return cmp.Or(rows.Err(), errShort)
		}
		for s.scan != nil && rows.Next() {
			if err := s.scan(rows); err != nil {
				return err
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	for rows.NextResultSet() { // only this reports errors after the last answer
	}
	return rows.Err()
}

func (t *tx) Open(ctx context.Context, first sqlengine.First) (o sqlengine.Opened, err error) {
	t.timeout = first.Timeout
	wait := timeouts[t.timeout]
	if len(first.Lock) > 0 {
		t.read(ctx, locking(wait, t.sql.lockQueues, first.Lock), nil)
	}
	answer := t.askHeads(ctx, first.From, first.Queues)
	t.byID(ctx, &o.Rows, first.IDs, wait, false)
	t.byKey(ctx, &o.Rows, first.Names, wait, false)
	again := t.ranges(ctx, first.Ranges, &o.Ranges)
	if err := t.send(ctx); err != nil {
		return o, err
	}
	o.Now, o.Heads = answer()
	t.remembers = make(map[int64]bool)
	for i := range o.Heads {
		t.remembers[o.Heads[i].Num] = o.Heads[i].Remembers
	}
	t.remembered(ctx, &o.Memories, first.Names, wait)
	if err := t.send(ctx); err != nil {
		return o, err
	}
	return o, again()
}

func (t *tx) Heads(ctx context.Context, from []sqlengine.LowBound) ([]sqlengine.Heads, error) {
	_, heads, err := t.heads(ctx, from)
	return heads, err
}

func (t *tx) Leave(ctx context.Context, from []sqlengine.LowBound) func() []sqlengine.Heads {
	answer := t.askHeads(ctx, from, nil)
	return func() []sqlengine.Heads {
		_, heads := answer()
		return heads
	}
}

func (t *tx) SaveQueue(ctx context.Context, q *sqlengine.Queue) {
	t.remembers[q.Num] = q.Remembers
	t.write(ctx, newStatement(t.sql.saveQueue, q.Paused, sqlengine.EncodeSettings(&q.Settings), int64(q.Revision), q.Base, q.Remembers, q.Settings.DeadKeep == 0, q.Num))
}

// Tally writes a row for each count of a queue.
func (t *tx) Tally(ctx context.Context, changes []sqlengine.Tally) {
	s, n := newStatement(t.sql.tally), 0
	for len(changes) > 0 {
		c := changes[0]
		var of []byte
		for ; len(changes) > 0 && changes[0].Queue == c.Queue && changes[0].Count == c.Count; changes = changes[1:] {
			of = appendChange(of, changes[0])
		}
		of = append(of, ']')
		switch {
		case c.Count == sqlengine.CountWaiting:
			continue // fold sums it up from CountDue
		case n == rowsMost:
			t.write(ctx, s)
			s, n = newStatement(t.sql.tally), 0
		}
		s.row(n, c.Queue, int64(c.Count), of)
		n++
	}
	if n > 0 {
		t.write(ctx, s)
	}
}

// appendChange adds a change to the JSON of a count: [[minute,n],...
func appendChange(b []byte, c sqlengine.Tally) []byte {
	sep := byte(',')
	if len(b) == 0 {
		sep = '['
	}
	b = append(b, sep, '[')
	b = strconv.AppendInt(b, c.Minute, 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, c.N, 10)
	return append(b, ']')
}

func (t *tx) Stock(ctx context.Context, queues []int64, ms int64) (map[int64]sqlengine.Stock, error) {
	found := make(map[int64]sqlengine.Stock, len(queues))
	minute := rules.MinuteOf(ms)
	ask := newStatement(t.sql.stock, queues, queues, minute, minute, queues, queues, minute*time.Minute.Milliseconds(), ms)
	t.read(ctx, ask, sqlengine.ScanStock(found))
	return found, t.send(ctx)
}

func (t *tx) Due(ctx context.Context, queue, end int64) (due []sqlengine.Tally, err error) {
	t.read(ctx, newStatement(t.sql.due, queue, end, queue, end), sqlengine.ScanDue(queue, &due))
	return due, t.send(ctx)
}
