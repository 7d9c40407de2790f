package mysqlengine

import (
	"testing"

	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// However many minutes a fold is about, it sends few statements: on a connection that takes
// one at a time, each is a round trip.
func TestFoldOfManyMinutes(t *testing.T) {
	t.Parallel()
	const minutes = 10_000
	sums := make(map[count]int64)
	for queue := range int64(2) {
		for m := range int64(minutes) {
			sums[count{queue + 1, int64(sqlengine.CountDue), m}] = 1 - 2*(m%2)
		}
	}
	in := &tx{store: &store{packet: 1 << 30, sql: statementsOf("t")}}
	in.fold(t.Context(), []int64{1}, sums)
	if n := len(in.waiting); n > 2*minutes/rowsMost+2*minutes/listMost {
		t.Errorf("%d statements for %d minutes", n, len(sums))
	}
}
