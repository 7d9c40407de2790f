package diskengine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestManyQueues spreads messages over many queues in several sstables, and asks all of the queues at once:
// nobody is missing, and nothing is read of a queue in which nobody is due.
func TestManyQueues(t *testing.T) {
	queues, each, tables := disktest.Thorough(250, 40), disktest.Thorough(6, 50), 3
	clock := enginetest.NewClock()
	p := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 4 << 20, BlockBytes: 4 << 10, MergeTables: 100}}
	var reads atomic.Int64
	e := p.open(t)
	ctx := t.Context()
	name := func(q int) string { return fmt.Sprintf("queue-%05d", q) }
	due := func(k int) time.Duration { return time.Hour + time.Duration(k)*time.Minute }
	for run := range tables {
		var msgs []engine.Message
		for i := run * queues * each / tables; i < (run+1)*queues*each/tables; i++ {
			msgs = append(msgs, message(name(i%queues), fmt.Sprint("key-", i/queues), due(i/queues)))
			if len(msgs) == engine.MaxBatch {
				if err := pushAll(t, e, msgs...); err != nil {
					t.Fatal(err)
				}
				msgs = msgs[:0]
			}
		}
		if err := pushAll(t, e, msgs...); err != nil {
			t.Fatal(err)
		}
		if err := e.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	d := p.fs.(*disktest.Disk)
	e = p.open(t)
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read {
			reads.Add(1)
		}
		return nil
	})
	wants := make([]engine.Want, queues)
	for q := range wants {
		wants[q] = engine.Want{Queue: name(q), Max: 10, TTR: time.Hour}
	}
	first := clock.Now().Add(due(0))
	listed := 0
	for after, more := "", true; more; more = after != "" {
		var some []engine.QueueInfo
		var err error
		if some, after, err = e.Queues(ctx, after, 1000); err != nil {
			t.Fatal(err)
		}
		for _, i := range some {
			if i.Queue != name(listed) || i.Scheduled != int64(each) || i.Ready != 0 || !i.NextDue.Equal(first) {
				t.Fatalf("queue %d of %d is %+v", listed, queues, i)
			}
			listed++
		}
	}
	if listed != queues {
		t.Errorf("%d queues are listed", listed)
	}
	g, err := e.Lease(ctx, wants)
	if err != nil {
		t.Fatal(err)
	}
	for q, granted := range g.Queues {
		if granted.Err != nil || len(granted.Messages) != 0 || !granted.NextDue.Equal(first) {
			t.Fatalf("before anybody is due %s gives %+v", name(q), granted)
		}
	}
	if reads.Load() > 0 {
		t.Errorf("%d blocks were read of queues in which nobody is due", reads.Load())
	}
	for k := range min(each, 4) {
		clock.Set(first.Add(time.Duration(k) * time.Minute))
		g, err := e.Lease(ctx, wants)
		if err != nil {
			t.Fatal(err)
		}
		var acks []engine.Settlement
		for q, granted := range g.Queues {
			if granted.Err != nil || len(granted.Messages) != 1 || granted.Messages[0].Key != fmt.Sprint("key-", k) || granted.Messages[0].Queue != name(q) {
				t.Fatalf("in minute %d %s gives %+v", k, name(q), granted)
			}
			acks = append(acks, engine.Settlement{Token: granted.Messages[0].Token, Do: engine.Ack})
		}
		if _, err := e.Settle(ctx, acks); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []int{0, queues / 2, queues - 1} {
		f, err := e.Forecast(ctx, name(q), time.Minute, 6*time.Hour)
		n := int64(0)
		for _, b := range f.Buckets {
			n += b.Count
		}
		if want := int64(each - min(each, 4)); err != nil || n != want {
			t.Errorf("of %s %d are forecast, not %d: %v", name(q), n, want, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPageOfManyQueues(t *testing.T) {
	p := newPlace(disktest.New(nil), nil)
	e := p.open(t)
	defer func() { must(t, e.Close()) }()
	enginetest.PageOfManyQueues(t, e)
}
