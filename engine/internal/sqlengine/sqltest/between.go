package sqltest

import (
	"context"

	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// between runs functions in the middle of a transaction, each once.
type between struct {
	sqlengine.Store
	late func() // before the opening
	keys func() // after a ByKey
	open func() // after the opening
	read func() // after Ranges
	told func() // after Stock

	ended chan string // receives the transactions that have ended; nil: none
}

func (b *between) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	err := b.Store.In(ctx, op, func(tx sqlengine.Tx) error { return do(midst{tx, b}) })
	if b.ended != nil {
		b.ended <- op
	}
	return err
}

type midst struct {
	sqlengine.Tx
	b *between
}

func once(do *func()) {
	if then := *do; then != nil {
		*do = nil
		then()
	}
}

func (m midst) Open(ctx context.Context, first sqlengine.First) (sqlengine.Opened, error) {
	once(&m.b.late)
	defer once(&m.b.open)
	return m.Tx.Open(ctx, first)
}

func (m midst) ByKey(ctx context.Context, names []sqlengine.Name, lock sqlengine.Lock, body bool) ([]*sqlengine.Row, []sqlengine.Memory, error) {
	defer once(&m.b.keys)
	return m.Tx.ByKey(ctx, names, lock, body)
}

func (m midst) Ranges(ctx context.Context, ranges []sqlengine.Range) ([][]*sqlengine.Row, error) {
	defer once(&m.b.read)
	return m.Tx.Ranges(ctx, ranges)
}

func (m midst) Stock(ctx context.Context, queues []int64, ms int64) (map[int64]sqlengine.Stock, error) {
	defer once(&m.b.told)
	return m.Tx.Stock(ctx, queues, ms)
}
