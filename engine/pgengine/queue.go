package pgengine

import (
	"github.com/jackc/pgx/v5"

	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// heads queues the question for the heads of queues.
func (t *tx) heads(queues []int64, heads *[]sqlengine.Heads) {
	if len(queues) > 0 {
		t.read(t.say.heads, func(r pgx.CollectableRow) error { return scanHeads(r, heads) }, queues)
	}
}

func scanHeads(r pgx.CollectableRow, heads *[]sqlengine.Heads) error {
	var h sqlengine.Heads
	var settings []byte
	var revision int64
	var waiting, leased, dead, forgotten *int64
	err := r.Scan(&h.Num, &h.Name, &h.Paused, &settings, &revision, &h.Base, &h.Remembers, &waiting, &leased, &dead, &forgotten)
	if err != nil {
		return err
	}
	h.Revision = uint64(revision)
	h.Waiting, h.Leased, h.Dead, h.Forgotten = sqlengine.OrNever(waiting), sqlengine.OrNever(leased), sqlengine.OrNever(dead), sqlengine.OrNever(forgotten)
	h.Settings, err = sqlengine.DecodeSettings(settings)
	*heads = append(*heads, h)
	return err
}
