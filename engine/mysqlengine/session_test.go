package mysqlengine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

// A server's defaults do not change the meaning of statements in sessions of Open. A caller's
// pool in which they would is refused.
func TestSessions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := mysqltest.Start(t, mysqltest.Settings("log_bin=bin", "server_id=1", "binlog_format=STATEMENT"))
	at := s.Database()
	_, err := tarry.Open(ctx, at+"?migrate=true", nil)
	if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "set binlog_format to ROW or MIXED; ") {
		t.Errorf("with binlog_format=STATEMENT: %v", err)
	}
	s.Exec("SET GLOBAL binlog_format = ROW")
	at = s.Database()
	ok(t, openURL(t, at+"?migrate=true").Close())
	hints := map[string]string{"sql_safe_updates = 1": "sql_safe_updates is on; turn it off", "sql_select_limit = 5": "sql_select_limit is 5"}
	if !mysqltest.IsMySQL() { // which has no such mode
		hints["sql_mode = 'ORACLE'"] = "sql_mode has ORACLE"
	}
	for setting, hint := range hints {
		name, _, _ := strings.Cut(setting, " ")
		s.Exec("SET GLOBAL " + setting)
		_, err := New(ctx, connect(t, at, true), nil)
		if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), hint) {
			t.Errorf("a pool with %s: %v", setting, err)
		}
		s.Exec("SET GLOBAL " + name + " = DEFAULT")
	}
	for setting := range hints {
		s.Exec("SET GLOBAL " + setting)
	}
	c := openURL(t, at+"?prefix=strange&migrate=true")
	for i := range 20 {
		ok(t, pushKey(t, c, fmt.Sprint(i)))
	}
	var settlements []tarry.Settlement
	for len(settlements) < 20 {
		got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"orders"}, Max: 20, Wait: time.Minute})
		ok(t, err)
		for i, m := range got.Messages {
			settlements = append(settlements, tarry.Settlement{Token: m.Token, Do: []tarry.Action{tarry.DoAck, tarry.DoRelease}[i%2]})
		}
	}
	settled, err := c.Settle(ctx, settlements)
	ok(t, err)
	for i := range settled {
		if settled[i].Err != nil {
			t.Errorf("settlement %d: %v", i, settled[i].Err)
		}
	}
}
