package pgengine

import (
	"math"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// rows queues the query for the rows of queues.
func (t *tx) rows(queues []int64, heads *[]sqlengine.Heads) {
	if len(queues) > 0 {
		t.read(t.sql.rows, func(r sqlengine.Scanner) error { return scanHeads(r, heads) }, queues)
	}
}

// heads queues the query for the heads of queues.
func (t *tx) heads(from []sqlengine.LowBound, heads *[]sqlengine.Heads) {
	if len(from) == 0 {
		return
	}
	var queues, forgotten []int64
	var at, ids [len(sqlengine.Places{})][]int64
	text := t.sql.live
	for i := range from {
		f := &from[i]
		if !f.Live() {
			text = t.sql.heads
		}
		queues, forgotten = append(queues, f.Queue), append(forgotten, f.Forgotten)
		for k, p := range f.From {
			at[k], ids[k] = append(at[k], p.At), append(ids[k], idBound(p.ID))
		}
	}
	args := []any{queues, forgotten}
	for k := range at {
		args = append(args, at[k], ids[k])
	}
	t.read(text, func(r sqlengine.Scanner) error { return scanHeads(r, heads) }, args...)
}

func scanHeads(r sqlengine.Scanner, heads *[]sqlengine.Heads) error {
	var h sqlengine.Heads
	var settings []byte
	var revision int64
	var places [len(sqlengine.Places{})][]int64
	var forgotten *int64
	err := r.Scan(&h.Num, &h.Name, &h.Paused, &settings, &revision, &h.Base, &h.Remembers, &places[0], &places[1], &places[2], &places[3], &forgotten)
	if err != nil {
		return err
	}
	h.Revision = uint64(revision)
	var first sqlengine.Places
	for k, p := range places {
		first[k].At = math.MaxInt64
		if len(p) == 2 {
			first[k] = codec.Place{At: p[0], ID: engine.ID(p[1])}
		}
	}
	h.Has(first, sqlengine.OrNever(forgotten))
	h.Settings, err = sqlengine.DecodeSettings(settings)
	*heads = append(*heads, h)
	return err
}
