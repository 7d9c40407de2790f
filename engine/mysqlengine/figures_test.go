package mysqlengine

import (
	"errors"
	"testing"

	"database/sql"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	raw := mysqltest.Shared(t)
	db := mysqltest.Open(t, raw)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE weight (n INT)")
	ok(t, err)
	outage.Measured(t, raw, func() outage.Session {
		tx := begin(t, db)
		for range 100 { // of two in a deadlock, the one with fewer changes is rolled back
			_, err := tx.ExecContext(t.Context(), "INSERT INTO weight VALUES (1)")
			ok(t, err)
		}
		lock := func(by interface {
			QueryRow(text string, args ...any) *sql.Row
		}, id engine.ID, how string) error {
			var got int64
			return by.QueryRow("SELECT id FROM tarry_message WHERE id = ? FOR UPDATE"+how, int64(id)).Scan(&got)
		}
		return outage.Session{
			Lock: func(id engine.ID) error { return lock(tx, id, "") },
			Free: func(id engine.ID) bool {
				err := lock(db, id, " SKIP LOCKED")
				if err != nil && !errors.Is(err, sql.ErrNoRows) {
					t.Error(err)
				}
				return err == nil
			},
			End: func() { _ = tx.Rollback() },
		}
	})
}
