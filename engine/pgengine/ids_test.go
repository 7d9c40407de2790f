package pgengine

import (
	"slices"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// A push of more messages than a block has ids gets them in order, even if other processes
// always reserve a block in between.
func TestIDsOfSeveralBlocks(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	_, err := pool.Exec(t.Context(), "ALTER SEQUENCE "+schema+".id_block INCREMENT BY 2")
	ok(t, err)
	last := engine.ID(0)
	e := another(t, pool, schema)
	for range 2 {
		for _, r := range push(t, e, slices.Repeat([]engine.Message{{Queue: "q"}}, 2500)...) {
			if r.ID <= last {
				t.Fatalf("id %d comes after %d", r.ID, last)
			}
			last = r.ID
		}
	}
}
