package mysqlengine

import (
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

func TestBesideOthers(t *testing.T) {
	t.Parallel()
	for name, several := range map[string]bool{"several statements at once": true, "one at a time": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := connect(t, mysqltest.Shared(t), several)
			sqltest.Run(t, func(t *testing.T) sqltest.Bed {
				prefix := newPrefix()
				t.Cleanup(func() { dropTables(t, db, prefix) })
				return sqltest.Bed{
					Open: func(t *testing.T, wrap func(sqlengine.Store) sqlengine.Store) engine.Whole {
						e, err := New(t.Context(), db, &Config{Prefix: prefix, Migrate: true})
						ok(t, err)
						t.Cleanup(func() { ok(t, e.Close()) })
						if wrap == nil {
							return e
						}
						return sqlengine.New(wrap(e.store), sqlengine.Config{Name: "mysql", MaxBody: maxBody})
					},
					Begin: func(t *testing.T, e engine.Engine) sqltest.Transaction {
						tx := begin(t, db)
						in, err := InTx(sqltest.Client{E: e}, tx)
						ok(t, err)
						return sqltest.Transaction{Engine: in.E, Commit: tx.Commit}
					},
				}
			})
		})
	}
}
