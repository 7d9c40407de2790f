package pgengine

import (
	"encoding/json"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/tarryhq/tarry/engine"
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
	var settings *string
	var revision int64
	var waiting, leased, dead, forgotten *int64
	err := r.Scan(&h.Num, &h.Name, &h.Paused, &settings, &revision, &h.Base, &h.Remembers, &waiting, &leased, &dead, &forgotten)
	if err != nil {
		return err
	}
	h.Revision = uint64(revision)
	h.Waiting, h.Leased, h.Dead, h.Forgotten = orNever(waiting), orNever(leased), orNever(dead), orNever(forgotten)
	h.Settings, err = decodeSettings(settings)
	*heads = append(*heads, h)
	return err
}

func orNever(ms *int64) int64 {
	if ms == nil {
		return math.MaxInt64
	}
	return *ms
}

// encodeSettings writes settings as JSON; nil: none is set.
func encodeSettings(s *engine.Settings) (*string, error) {
	if s.Unset() {
		return nil, nil
	}
	b, err := json.Marshal(s)
	return new(string(b)), err
}

func decodeSettings(text *string) (s engine.Settings, err error) {
	if text != nil {
		err = json.Unmarshal([]byte(*text), &s)
	}
	return s, err
}
