package mysqlengine

import (
	"testing"

	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

// Callers that look at rows before the error find none that is nil, if the end of the call's
// context closes the answer while it is read.
func TestRowsOfACallThatEnds(t *testing.T) {
	t.Parallel()
	answer, err := connect(t, mysqltest.Shared(t), true).QueryContext(t.Context(), "SELECT 1")
	ok(t, err)
	ok(t, answer.Close())
	var rows []*sqlengine.Row
	in := &tx{store: &store{packet: 1 << 20}}
	in.messages(t.Context(), &rows, false, sqlengine.None, "")
	if err := in.waiting[0].scan(answer); err == nil || rows != nil {
		t.Errorf("rows %v, %v", rows, err)
	}
}
