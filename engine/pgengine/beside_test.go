package pgengine

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

func TestBesideOthers(t *testing.T) {
	t.Parallel()
	sqltest.Run(t, func(t *testing.T) sqltest.Bed {
		pool := connect(t, pgtest.Shared(t))
		schema := newSchema(t, pool)
		return sqltest.Bed{
			Open: func(t *testing.T, wrap func(sqlengine.Store) sqlengine.Store) engine.Whole {
				e := another(t, pool, schema)
				if wrap == nil {
					return e
				}
				return sqlengine.New(wrap(e.store), sqlengine.Config{Name: "postgres", MaxBody: maxBody})
			},
			Alone: func(t *testing.T) engine.Whole {
				cfg := pool.Config()
				cfg.MaxConns = 1
				return another(t, connectWith(t, cfg), schema)
			},
			Waits: func(t *testing.T) {
				for waits := 0; waits == 0; {
					ok(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'`, schema).Scan(&waits))
				}
			},
			Lose: func(t *testing.T) {
				// A failover takes a while.
				text := `SELECT pg_sleep(0.3); TRUNCATE {queue}, {message}, {memory}, {tally}, {tally_change} RESTART IDENTITY; ALTER SEQUENCE {id_block} RESTART`
				_, err := pool.Exec(t.Context(), strings.NewReplacer("{", pgx.Identifier{schema}.Sanitize()+".", "}", "").Replace(text), pgx.QueryExecModeSimpleProtocol)
				ok(t, err)
			},
			Begin: func(t *testing.T, e engine.Engine) sqltest.Transaction {
				tx := begin(t, e.(*Engine).store.pool)
				in, err := InTx(sqltest.Client{E: e}, tx)
				ok(t, err)
				return sqltest.Transaction{Engine: in.E, Commit: func() error { return tx.Commit(t.Context()) }}
			},
		}
	})
}
