package pgengine

import (
	"context"

	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

func (t *tx) memories(into *[]sqlengine.Memory, text string, args ...any) {
	t.read(text, func(r sqlengine.Scanner) error {
		m, err := sqlengine.ScanMemory(r)
		m.Key = keyOf(m.Key)
		*into = append(*into, m)
		return err
	}, args...)
}

func (t *tx) Over(ctx context.Context, queue, from, until, ended int64, most int) (over []sqlengine.Memory, err error) {
	t.memories(&over, t.sql.over, queue, from, until, ended, most)
	return over, t.send(ctx)
}

func (t *tx) Remember(_ context.Context, memories []sqlengine.Memory) {
	n := len(memories)
	queues, keys, ids, dues := make([]int64, n), make([]string, n), make([]int64, n), make([]int64, n)
	endings, ended, forgotten := make([]int16, n), make([]int64, n), make([]int64, n)
	for i, m := range memories {
		queues[i], keys[i], ids[i], dues[i] = m.Queue, keyText(m.Key), int64(m.ID), m.Due
		endings[i], ended[i], forgotten[i] = int16(m.Ending), m.Ended, m.Forgotten
	}
	t.writeAll(n, t.sql.remember, queues, keys, ids, dues, endings, ended, forgotten)
}

func (t *tx) Forget(_ context.Context, names []sqlengine.Name) {
	queues, keys := split(names)
	t.writeAll(len(names), t.sql.forget, queues, keys)
}
