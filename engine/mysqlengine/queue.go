package mysqlengine

import (
	"context"
	"database/sql"
	"time"

	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// heads reads the time and what queues have first.
func (t *tx) heads(ctx context.Context, queues []int64) (time.Time, []sqlengine.Heads, error) {
	answer, err := t.askHeads(ctx, queues)
	if err != nil {
		return time.Time{}, nil, err
	}
	if err := t.send(ctx); err != nil {
		return time.Time{}, nil, err
	}
	now, heads := answer()
	if len(heads) < len(queues) {
		return now, nil, sqlengine.ErrGone
	}
	return now, heads, nil
}

// askHeads queues the question for the time and the heads of queues; answer has them once
// that has been sent.
func (t *tx) askHeads(ctx context.Context, queues []int64) (answer func() (time.Time, []sqlengine.Heads), err error) {
	var us int64
	found := make(map[int64]sqlengine.Heads, len(queues))
	ask, scan := say(t.say.heads, queues), func(r *sql.Rows) error { return scanHeads(r, &us, found) }
	if len(queues) == 0 {
		ask, scan = say("SELECT "+now), func(r *sql.Rows) error { return r.Scan(&us) }
	}
	if err := t.read(ctx, ask, scan); err != nil {
		return nil, err
	}
	return func() (time.Time, []sqlengine.Heads) {
		heads := make([]sqlengine.Heads, 0, len(queues))
		for _, q := range queues {
			if h, ok := found[q]; ok {
				heads = append(heads, h)
			}
		}
		return time.UnixMicro(us).UTC(), heads
	}, nil
}

func scanHeads(r *sql.Rows, us *int64, found map[int64]sqlengine.Heads) error {
	var h sqlengine.Heads
	var name, settings []byte
	var waiting, ranked, leased, dead, forgotten *int64
	err := r.Scan(us, &h.Num, &name, &h.Paused, &settings, &h.Revision, &h.Base, &h.Remembers, &waiting, &ranked, &leased, &dead, &forgotten)
	if err != nil {
		return err
	}
	h.Name = string(name)
	h.Waiting = min(sqlengine.OrNever(waiting), sqlengine.OrNever(ranked))
	h.Leased, h.Dead, h.Forgotten = sqlengine.OrNever(leased), sqlengine.OrNever(dead), sqlengine.OrNever(forgotten)
	h.Settings, err = sqlengine.DecodeSettings(settings)
	found[h.Num] = h
	return err
}
