package mysqlengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

func (t *tx) memories(ctx context.Context, into *[]sqlengine.Memory, s *statement) {
	t.read(ctx, s, func(r sqlengine.Scanner) error {
		m, err := sqlengine.ScanMemory(r)
		*into = append(*into, m)
		return err
	})
}

func (t *tx) Over(ctx context.Context, queue, from, until, ended int64, most int) (over []sqlengine.Memory, err error) {
	t.memories(ctx, &over, newStatement(t.sql.over, queue, queue, from, until, ended, most))
	return over, t.send(ctx)
}

func (t *tx) Remember(ctx context.Context, memories []sqlengine.Memory) {
	for some := range slices.Chunk(memories, rowsMost) {
		s := newStatement(t.sql.remember)
		for i, m := range some {
			s.row(i, m.Queue, m.Key, int64(m.ID), m.Due, int64(m.Ending), m.Ended, m.Forgotten)
		}
		t.write(ctx, s.end(onRemember))
	}
}

func (t *tx) Forget(ctx context.Context, names []sqlengine.Name) {
	byQueue(names, func(queue int64, keys []string) { t.write(ctx, newStatement(t.sql.forget, queue, keys)) })
}

// byQueue runs do on the keys of each queue, at most listMost at a time. names are in order.
func byQueue(names []sqlengine.Name, do func(queue int64, keys []string)) {
	for len(names) > 0 {
		queue := names[0].Queue
		var keys []string
		for _, n := range names {
			if n.Queue != queue || len(keys) == listMost {
				break
			}
			keys = append(keys, n.Key)
		}
		do(queue, keys)
		names = names[len(keys):]
	}
}
