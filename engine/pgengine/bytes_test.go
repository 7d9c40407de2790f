package pgengine

import (
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// Bytes come back whatever bytea_output is, and the setting stays as it is for the caller.
func TestBytesAsText(t *testing.T) {
	t.Parallel()
	raw := outage.With(t, outage.With(t, pgtest.Shared(t), "default_query_exec_mode", "exec"), "bytea_output", "escape")
	c := outage.Open(t, raw)
	_, err := c.Push(t.Context(), "orders", []byte("\x00\\\xff"), tarry.Key("42"))
	ok(t, err)
	got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"orders"}, Max: 1})
	if ok(t, err); len(got.Messages) != 1 || string(got.Messages[0].Body) != "\x00\\\xff" {
		t.Errorf("leased %+v", got.Messages)
	}
	tx := begin(t, c.Engine().(*Engine).store.pool)
	in, err := InTx(sqltest.Client{E: c.Engine()}, tx)
	ok(t, err)
	_, err = in.E.Get(t.Context(), tarry.Ref{Queue: "orders", Key: "42"})
	ok(t, err)
	var form string
	ok(t, tx.QueryRow(t.Context(), "SHOW bytea_output").Scan(&form))
	if form != "escape" {
		t.Errorf("the caller's transaction has bytea_output %s", form)
	}
}
