package mysqlengine

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// heads reads the time and the heads of queues.
func (t *tx) heads(ctx context.Context, from []sqlengine.LowBound) (time.Time, []sqlengine.Heads, error) {
	answer := t.askHeads(ctx, from, nil)
	if err := t.send(ctx); err != nil {
		return time.Time{}, nil, err
	}
	now, heads := answer()
	return now, heads, nil
}

// askHeads queues the queries for the time, the heads of queues, and the rows of others.
// answer returns them after the next send. The time is the earliest of the statements' times.
// Later statements may see later commits, but none misses earlier ones.
func (t *tx) askHeads(ctx context.Context, from []sqlengine.LowBound, rows []int64) (answer func() (time.Time, []sqlengine.Heads)) {
	var us int64
	found := make(map[int64]sqlengine.Heads, len(from)+len(rows))
	order := slices.Clone(rows)
	scan := func(r sqlengine.Scanner) error { return scanHeads(r, &us, found) }
	var whole []int64
	for i := range from {
		f := &from[i]
		order = append(order, f.Queue)
		if f.Lowest() {
			whole = append(whole, f.Queue)
			continue
		}
		t.read(ctx, t.sql.headsFrom(f), scan)
	}
	if len(whole) > 0 {
		t.read(ctx, newStatement(t.sql.heads, whole), scan)
	}
	if len(rows) > 0 {
		t.read(ctx, newStatement(t.sql.rows, rows), scan)
	}
	if len(order) == 0 {
		t.read(ctx, newStatement("SELECT "+now), func(r sqlengine.Scanner) error { return r.Scan(&us) })
	}
	return func() (time.Time, []sqlengine.Heads) {
		heads := make([]sqlengine.Heads, 0, len(order))
		for _, queue := range order {
			if h, ok := found[queue]; ok {
				heads = append(heads, h)
			}
		}
		return time.UnixMicro(us).UTC(), heads
	}
}

func scanHeads(r sqlengine.Scanner, us *int64, found map[int64]sqlengine.Heads) error {
	var h sqlengine.Heads
	var name, settings []byte
	var places [len(sqlengine.Places{})]sql.RawBytes
	var forgotten *int64
	var now int64
	err := r.Scan(&places[0], &places[1], &places[2], &places[3], &forgotten, &now, &h.Num, &name, &h.Paused, &settings, &h.Revision, &h.Base, &h.Remembers)
	if err != nil {
		return err
	}
	if *us == 0 || now < *us {
		*us = now
	}
	h.Name = string(name)
	var first sqlengine.Places
	for k, p := range places {
		at, id, _ := strings.Cut(string(p), " ")
		ms, err := strconv.ParseInt(at, 10, 64)
		if p == nil || ms == math.MaxInt64 { // a fence row
			first[k].At = math.MaxInt64
			continue
		}
		n, idErr := strconv.ParseUint(id, 10, 64)
		if err = cmp.Or(err, idErr); err != nil {
			return err
		}
		first[k] = codec.Place{At: ms, ID: engine.ID(n)}
	}
	h.Has(first, sqlengine.OrNever(forgotten))
	h.Settings, err = sqlengine.DecodeSettings(settings)
	found[h.Num] = h
	return err
}
