package outage

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// Full fills the disk of a store, and makes room again by free. Pushes must fail once the
// disk is full, nothing may be lost, and workers must go on when there is room.
func Full(t *testing.T, url string, free func()) {
	c := Open(t, url)
	ctx := t.Context()
	l := NewLedger(t, queue)
	body := make([]byte, 8<<10)
	_, _ = rand.Read(body) // so that it cannot be compressed
	push := func(key string) error {
		_, err := c.Push(ctx, queue, body, tarry.Key(key), tarry.TTR(time.Hour), tarry.OnConflict(tarry.Keep))
		return err
	}
	refused := func(err error) {
		t.Helper()
		Says(t, err, tarry.ErrNoSpace, "disk")
	}
	kept := 0
	for ; kept < 10_000; kept++ {
		key := fmt.Sprint(kept)
		if err := push(key); err != nil {
			refused(err)
			break
		}
		l.Entries[key] = &Entry{Pushed: true}
	}
	if kept < 100 || kept == 10_000 {
		t.Fatalf("%d were kept", kept)
	}
	t.Logf("%d were kept", kept)
	if err := push("more"); err != nil { // a little room may be left
		refused(err)
	} else {
		l.Entries["more"] = &Entry{Pushed: true}
		kept++
	}

	// Reads succeed on a full disk. Changes need room for a moment, and may fail.
	i, err := c.Get(ctx, tarry.ByKey("1").Of(queue))
	check(t, err)
	if len(i.Body) != len(body) {
		t.Errorf("a body has %d bytes", len(i.Body))
	}
	Counts(t, c, queue, 0, 0, int64(kept), 0)
	may := func(what string, err error) bool {
		t.Helper()
		if t.Logf("while it is full, %s: %v", what, err); err != nil {
			refused(err)
		}
		return err == nil
	}
	if may("a cancel", c.Cancel(ctx, tarry.ByKey("2").Of(queue))) {
		l.Entries["2"].Gone = true
	}
	lease, err := c.Claim(ctx, tarry.ByKey("3").Of(queue), tarry.LeaseOptions{TTR: time.Hour})
	if may("a claim", err) {
		settled, err := c.Settle(ctx, []tarry.Settlement{{Token: lease.Token, Do: tarry.DoAck}})
		if err == nil {
			err = settled[0].Err
		}
		if may("an ack", err) {
			l.Entries["3"].Gone = true
		} else {
			defer func() { // its lease lasts for an hour
				settled, err := c.Settle(ctx, []tarry.Settlement{{Token: lease.Token, Do: tarry.DoAck}})
				check(t, errors.Join(err, settled[0].Err))
			}()
			l.Entries["3"].Gone = true
		}
	}
	l.Work(c, tarry.WorkerConfig{})
	free()
	t.Logf("all were handled %v after there was room", l.Rest(patience))
	check(t, push("more"))
}
