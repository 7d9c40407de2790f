package pgengine

import (
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// heads queues the question for the heads of queues.
func (t *tx) heads(from []sqlengine.Floor, heads *[]sqlengine.Heads) {
	n := len(from)
	if n == 0 {
		return
	}
	columns := make([][]int64, 2+2*len(from[0].From)) // numbers, places, and what is remembered
	text := t.say.heads
	for i := range from {
		f := &from[i]
		columns[0] = append(columns[0], f.Queue)
		for k, p := range f.From {
			columns[1+2*k], columns[2+2*k] = append(columns[1+2*k], p.At), append(columns[2+2*k], idBound(p.ID))
		}
		columns[len(columns)-1] = append(columns[len(columns)-1], f.Forgotten)
		if !f.Ground() {
			text = t.say.headsFrom
		}
	}
	if text == t.say.heads {
		columns = columns[:1]
	}
	args := make([]any, len(columns))
	for i, c := range columns {
		args[i] = c
	}
	t.read(text, func(r pgx.CollectableRow) error { return scanHeads(r, heads) }, args...)
}

func scanHeads(r pgx.CollectableRow, heads *[]sqlengine.Heads) error {
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
			first[k] = token.Place{At: p[0], ID: engine.ID(p[1])}
		}
	}
	h.Has(first, sqlengine.OrNever(forgotten))
	h.Settings, err = sqlengine.DecodeSettings(settings)
	*heads = append(*heads, h)
	return err
}
