package from

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/pgengine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

func pushInTx(ctx context.Context, c *tarry.Client, tx pgx.Tx) (err error) {
	in, err := pgengine.InTx(c, tx) // of your own transaction
	if err != nil {
		return err
	}

	_, err = mails.Push(ctx, in, Mail{To: "ann"}, tarry.In(48*time.Hour), tarry.Key("42"))
	if err != nil {
		return err
	}

	err = tx.Commit(ctx)
	return err
}

func cancelMail(ctx context.Context, c *tarry.Client) (err error) {
	err = mails.Cancel(ctx, c, tarry.ByKey("42"))
	return err
}

func TestFromPolledTable(t *testing.T) {
	url := pgtest.Shared(t)
	pool := pgtest.Pool(t, url)
	p := follow(t, "polled-table.md", "postgres://app@127.0.0.1:5432/shop", url, "psql shop", "psql '"+url+"'")
	p.compiled("table_test.go")
	statements := p.blocks("sql")
	_, err := pool.Exec(t.Context(), statements[0])
	check(t, err)
	_, err = pool.Exec(t.Context(), `INSERT INTO timers (order_id, run_at, payload) VALUES ('1', now(), '{}'), ('2', now() + interval '50 seconds', '{}'),
		('3', now() + interval '1 hour', '{"to": "ann"}'), ('4', now() + interval '1 hour', '{"to": "bob"}'), ('4', now() + interval '1 hour', '{"to": "eve"}')`)
	check(t, err)
	p.run()
	p.run()
	if out, err := p.try(); err == nil || !strings.Contains(out, "timers: 6: TO has another message with the key 4\n") || !strings.Contains(out, "timers  2       0     1        0     2") {
		t.Errorf("the move says %s", out)
	}
	rows, err := pool.Query(t.Context(), statements[1])
	check(t, err)
	due, err := pgx.CollectRows(rows, pgx.RowToMap)
	if len(due) != 1 || err != nil {
		t.Errorf("the poller takes %v, %v", due, err)
	}
	if out := p.run(); !strings.HasPrefix(out, "2\n") || !strings.Contains(out, " 4 ") {
		t.Errorf("in the end there are %s", out)
	}
	p.done()
	c := p.client()
	p.has(c, "mail", "3", "4")
	if body := p.handled(c, mails, "3"); body.To != "ann" {
		t.Errorf("a worker got %+v", body)
	}

	inTx(t)
}

// inTx pushes in a transaction of one's own, and cancels.
func inTx(t *testing.T) {
	url := pgtest.Shared(t)
	c, err := tarry.Open(t.Context(), url+"&migrate=true", nil)
	check(t, err)
	defer c.Close()
	tx, err := pgtest.Pool(t, url).Begin(t.Context())
	check(t, err)
	check(t, pushInTx(t.Context(), c, tx))
	check(t, cancelMail(t.Context(), c))
}
