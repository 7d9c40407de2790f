package pgengine

import (
	"context"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	raw := pgtest.Shared(t)
	pool := connect(t, raw)
	outage.Measured(t, raw, func() outage.Session {
		tx := begin(t, pool)
		_, err := tx.Exec(t.Context(), "SET LOCAL deadlock_timeout = '1min'")
		ok(t, err)
		return outage.Session{
			Lock: func(id engine.ID) error {
				_, err := tx.Exec(t.Context(), "SELECT FROM tarry.message WHERE id = $1 FOR UPDATE", int64(id))
				return err
			},
			Free: func(id engine.ID) bool {
				got, err := pool.Exec(t.Context(), "SELECT FROM tarry.message WHERE id = $1 FOR UPDATE SKIP LOCKED", int64(id))
				ok(t, err)
				return got.RowsAffected() > 0
			},
			End: func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) },
		}
	})
}
