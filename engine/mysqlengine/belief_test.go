package mysqlengine

import (
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

// What a transaction takes for granted undoes it where it is wrong, whether there is something
// to count or not.
func TestBelief(t *testing.T) {
	t.Parallel()
	db := connect(t, mysqltest.Shared(t), true)
	prefix := newPrefix()
	t.Cleanup(func() { dropTables(t, db, prefix) })
	e := openOn(t, db, prefix)
	_, err := e.Push(t.Context(), []engine.Message{{Queue: "plain"}, {Queue: "set"}, {Queue: "remembers", Terms: engine.Terms{Remember: time.Hour}, Key: "k"}})
	ok(t, err)
	_, err = e.Configure(t.Context(), "set", engine.Settings{DeadMax: 10}, "")
	ok(t, err)
	nums, err := e.store.Names(t.Context(), []string{"plain", "set", "remembers"}, false)
	ok(t, err)
	plain, set, remembers := sqlengine.Queue{Num: nums[0]}, sqlengine.Queue{Num: nums[1], Revision: 1}, sqlengine.Queue{Num: nums[2]}
	now, _, err := e.store.Heads(t.Context(), nil)
	ok(t, err)
	for _, c := range []struct {
		name   string
		belief sqlengine.Belief
		right  bool
	}{
		{"right", sqlengine.Belief{Queues: []sqlengine.Queue{plain}}, true},
		{"right of two", sqlengine.Belief{Queues: []sqlengine.Queue{plain, set}}, true},
		{"another revision", sqlengine.Belief{Queues: []sqlengine.Queue{plain, {Num: set.Num}}}, false},
		{"a queue that remembers", sqlengine.Belief{Queues: []sqlengine.Queue{plain, remembers}}, false},
		{"no such queue", sqlengine.Belief{Queues: []sqlengine.Queue{{Num: 1 << 40}}}, false},
		{"earlier", sqlengine.Belief{Queues: []sqlengine.Queue{plain}, Now: now.Add(-time.Hour)}, false},
		{"later", sqlengine.Belief{Queues: []sqlengine.Queue{plain}, Now: now.Add(time.Hour)}, false},
	} {
		for what, changes := range map[string][]sqlengine.Tally{
			"nothing to count": nil,
			"one to count":     {{Queue: plain.Num, Count: sqlengine.CountDue, Minute: 1, N: 1}},
			"two to count":     {{Queue: plain.Num, Count: sqlengine.CountDue, Minute: 1, N: 1}, {Queue: set.Num, Count: sqlengine.CountDue, Minute: 1, N: 1}},
		} {
			err := e.store.In(t.Context(), "push", func(tx sqlengine.Tx) error {
				_, err := tx.Believe(t.Context(), c.belief)
				if err == nil && changes != nil {
					err = tx.Tally(t.Context(), changes)
				}
				return err
			})
			if c.right && err != nil || !c.right && !errors.Is(err, sqlengine.ErrAgain) {
				t.Errorf("%s, %s: %v", c.name, what, err)
			}
		}
	}
	var counted int
	ok(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+prefix+"_tally_change WHERE changes = '[[1,1]]'").Scan(&counted))
	if counted != 2*3 {
		t.Errorf("%d rows are counted, want 6", counted)
	}
}

// A connection of a pool that the engine has made needs not be told how to read.
func TestOwnConnectionsReadWhatIsCommitted(t *testing.T) {
	t.Parallel()
	c := openURL(t, mysqltest.Shared(t)+"?migrate=true")
	var name, level string
	ok(t, c.Engine().(*Engine).store.db.QueryRowContext(t.Context(), "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')").Scan(&name, &level))
	if level != "READ-COMMITTED" {
		t.Errorf("%s is %s", name, level)
	}
}
