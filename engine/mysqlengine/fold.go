package mysqlengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// foldMost is how many tallies are added up at once. Among more tallies, more have the same
// minute.
const foldMost = 1000

// count identifies a row of tally.
type count struct{ queue, count, minute int64 }

func (s *store) Fold(ctx context.Context, from int64) (last int64, more bool, err error) {
	err = s.in(ctx, "tally", func(t *tx) error {
		var seqs []int64
		sums := make(map[count]int64)
		t.read(ctx, newStatement(s.sql.changes, from, foldMost), func(r sqlengine.Scanner) error {
			var seq int64
			var c count
			var text []byte
			if err := r.Scan(&seq, &c.queue, &c.count, &text); err != nil {
				return err
			}
			var changes [][2]int64 // minute and n
			if err := json.Unmarshal(text, &changes); err != nil {
				return err
			}
			seqs, last = append(seqs, seq), seq
			all := int64(0)
			for _, change := range changes {
				c.minute = change[0]
				sums[c] += change[1]
				all += change[1]
			}
			if c.count == int64(sqlengine.CountDue) { // Tally does not write the sum
				sums[count{c.queue, int64(sqlengine.CountWaiting), 0}] += all
			}
			return nil
		})
		if err := t.send(ctx); err != nil {
			return err
		}
		more = len(seqs) == foldMost
		t.fold(ctx, seqs, sums)
		return nil
	})
	if errors.Is(err, sqlengine.ErrAgain) { // another process is folding
		return 0, false, nil
	}
	return last, more, err
}

// fold adds sums to the counts, and deletes the tallies that they include.
func (t *tx) fold(ctx context.Context, seqs []int64, sums map[count]int64) {
	counts := slices.SortedFunc(maps.Keys(sums), func(a, b count) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.count, b.count), cmp.Compare(a.minute, b.minute))
	})
	counts = slices.DeleteFunc(counts, func(c count) bool { return sums[c] == 0 })
	for some := range slices.Chunk(counts, rowsMost) {
		s := newStatement(t.sql.sum)
		for i, c := range some {
			s.row(i, c.queue, c.count, c.minute, sums[c])
		}
		t.write(ctx, s.end(t.sql.onSum))
	}
	// One statement deletes many minutes: a statement for each would take most of the time, and
	// a fold that takes longer than its bound is undone each time.
	fewer := slices.DeleteFunc(counts, func(c count) bool { return sums[c] > 0 }) // others cannot have become zero
	for len(fewer) > 0 {
		c, minutes := fewer[0], []int64(nil)
		for len(fewer) > 0 && len(minutes) < listMost && fewer[0].queue == c.queue && fewer[0].count == c.count {
			minutes, fewer = append(minutes, fewer[0].minute), fewer[1:]
		}
		t.write(ctx, newStatement(t.sql.zero, c.queue, c.count, minutes))
	}
	for some := range slices.Chunk(seqs, listMost) {
		t.write(ctx, newStatement(t.sql.unsum, some))
	}
}
