package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tarryhq/tarry"
)

// heldLine is what Hold writes once everything is pushed.
const heldLine = "held"

// Hold is the work of the other process of recover. It pushes n messages to a queue of the
// store, says so on w, and waits until ctx ends.
func Hold(ctx context.Context, cfg Config, queue string, w io.Writer) error {
	c, err := cfg.Open(ctx, cfg.Store, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	t := &trial{Config: cfg, scenario: "recover", queue: queue, c: c}
	if err := t.pushAll(ctx); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w, heldLine); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// waitHeld waits for the line that Hold writes.
func waitHeld(r io.Reader) error {
	var line string
	if _, err := fmt.Fscanln(r, &line); err != nil || line != heldLine {
		return fmt.Errorf("the process that was to hold the messages ended early")
	}
	return nil
}

// recover lets another process push n messages, and kills it with -9 right after the last
// answer. It measures from opening the store until the first message is pushed and leased.
// Then it looks for the messages.
func (t *trial) recover(ctx context.Context) error {
	t.result.Batch = fillBatch
	// An engine that lets the other side wait holds no messages itself, so killing its process
	// would show nothing.
	if caps := t.c.Capabilities(); !caps.Durable || caps.LeaseWait {
		return ErrNoRecover
	}
	// The other process needs the store for itself.
	if err := t.close(); err != nil {
		return err
	}
	if err := t.holdAndKill(ctx); err != nil {
		return err
	}
	t.Progress("recover: killed; opening the store again")
	start := time.Now()
	c, err := t.Open(ctx, t.Store, nil)
	if err != nil {
		return err
	}
	t.c = c
	probe := t.queue + ".probe"
	if _, err := c.Push(ctx, probe, t.body(0), tarry.Key("probe")); err != nil {
		return err
	}
	got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{probe}, Max: 1, Wait: time.Minute})
	if err != nil {
		return err
	}
	if len(got.Messages) != 1 {
		return fmt.Errorf("the store was opened, but a message due now was not handed out within a minute")
	}
	t.result.Seconds = round(time.Since(start).Seconds(), 6)
	if _, err := c.Settle(ctx, []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoAck}}); err != nil {
		return err
	}
	return t.verify(ctx)
}

func (t *trial) close() error {
	c := t.c
	t.c = nil
	return c.Close()
}

// holdAndKill has another process push the messages, and kills it once they are answered.
func (t *trial) holdAndKill(ctx context.Context) error {
	cmd := t.Hold(ctx, t.queue, t.N)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = waitHeld(out)
	err = cmp.Or(err, cmd.Process.Kill())
	_ = cmd.Wait() // its error only reports the kill
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// verify counts the messages by the store's counters, and lists them to look for their keys.
// The greater number of missing messages counts.
func (t *trial) verify(ctx context.Context) error {
	q, err := t.c.Queue(ctx, t.queue)
	if err != nil {
		return err
	}
	t.result.Counted = q.Scheduled + q.Ready
	t.result.Checked, t.result.Verified = t.N, "counters and the keys of all messages listed"
	found, missing := make([]bool, t.N), int64(t.N)
	for m, err := range t.c.ListWhere(ctx, tarry.Filter{Queue: t.queue, States: []tarry.State{tarry.Scheduled, tarry.Ready}}) {
		if err != nil {
			return err
		}
		if i := index(m.Key); i >= 0 && i < t.N && !found[i] {
			found[i] = true
			missing--
		}
	}
	t.result.Lost = max(int64(t.N)-t.result.Counted, missing)
	return nil
}
