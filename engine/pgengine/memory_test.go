package pgengine

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// A late ack of a dead message, beside a push of its key, may leave a memory where a live
// message holds the key. That must not keep the live one from being acked.
func TestMemoryBesideALiveKey(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	c := open(t, pool, schema)
	ctx := t.Context()
	_, err := c.Push(ctx, "orders", nil, tarry.Key("42"), tarry.Remember(time.Hour))
	ok(t, err)
	_, err = pool.Exec(ctx, `INSERT INTO `+schema+`.memory (queue, key, id, due, ending, ended, forgotten)
		SELECT queue, key, 1, due, 2, due, due + 1000000 FROM `+schema+`.message`)
	ok(t, err)
	got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"orders"}, Max: 1})
	ok(t, err)
	settled, err := c.Settle(ctx, []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoAck}})
	ok(t, err)
	ok(t, settled[0].Err)
	info, err := c.Get(ctx, tarry.ByKey("42").Of("orders"))
	ok(t, err)
	if info.State != tarry.Finished || info.Ending != tarry.WasAcked {
		t.Errorf("it is %v, %v; want finished, acked", info.State, info.Ending)
	}
}
