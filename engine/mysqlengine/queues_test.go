package mysqlengine

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

// A page of many queues takes no more statements than one of few.
func TestQueuesInFewStatements(t *testing.T) {
	t.Parallel()
	db := connect(t, mysqltest.Shared(t), true)
	db.SetMaxOpenConns(1) // the server counts statements by connection
	prefix := newPrefix()
	e, err := newEngine(t.Context(), db, &Config{Prefix: prefix, Migrate: true}, nil)
	ok(t, err)
	t.Cleanup(func() { dropTables(t, db, prefix) })
	defer e.Close()
	said := func() (n int) {
		var name string
		ok(t, db.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Com_select'").Scan(&name, &n))
		return n
	}
	page := func(queues int) int {
		t.Helper()
		msgs := make([]engine.Message, queues)
		for i := range msgs {
			msgs[i] = engine.Message{Queue: fmt.Sprintf("q%03d", i), Due: engine.When{In: time.Hour}}
		}
		_, err := e.Push(t.Context(), msgs)
		ok(t, err)
		least := math.MaxInt
		for range 5 { // the engine's tasks may read meanwhile
			before := said()
			got, _, err := e.Queues(t.Context(), "", engine.MaxPage)
			ok(t, err)
			if len(got) != queues || got[queues-1].Scheduled == 0 || got[queues-1].NextDue.IsZero() {
				t.Fatalf("%d queues of %d, the last %+v", len(got), queues, got[len(got)-1])
			}
			least = min(least, said()-before)
		}
		return least
	}
	few, many := page(4), page(400)
	t.Logf("%d statements that read", many)
	if many > few {
		t.Errorf("4 queues take %d statements, 400 take %d", few, many)
	}
}
