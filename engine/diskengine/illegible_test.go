package diskengine_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// notGiving is a store whose runs have their first entries at so many bytes; from when it is called the
// disk does not give them.
func notGiving(t *testing.T, cfg diskengine.Config) (d *disktest.Disk, p place, e *diskengine.Engine, clock *enginetest.Clock, spoil func()) {
	t.Helper()
	d, clock = disktest.New(nil), enginetest.NewClock()
	cfg.Now = clock.Now
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	p = place{d, "data", cfg, diskengine.Tune{SegmentBytes: 64 << 10, BlockBytes: 512}}
	return d, p, p.open(t), clock, func() {
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && c.Off == 64 {
				return syscall.EIO
			}
			return nil
		})
	}
}

// blockful is a message that fills about a block.
func blockful(queue, key string, in time.Duration) engine.Message {
	m := message(queue, key, in)
	m.Body = noise(100)
	return m
}

// TestOneThatTheDiskDoesNotGive: of many items that come in one call only that fails whose message the disk
// does not give, and it is carried out once it does.
func TestOneThatTheDiskDoesNotGive(t *testing.T) {
	d, _, e, _, spoil := notGiving(t, diskengine.Config{})
	must(t, pushAll(t, e, blockful("q", "a", 0), blockful("q", "waits", time.Hour)))
	must(t, e.Flush(t.Context()))
	bad := lease(t, e, "q", 1)
	must(t, pushAll(t, e, message("other", "b", 0), message("other", "c", time.Hour)))
	good := lease(t, e, "other", 1)
	spoil()
	all := []engine.Settlement{{Token: bad[0].Token, Do: engine.Retry}, {Token: good[0].Token, Do: engine.Ack}}
	out, err := e.Settle(t.Context(), all)
	if err != nil || !errors.Is(out[0].Err, engine.ErrUnavailable) || !strings.Contains(out[0].Err.Error(), "see to the disk") || out[1].Err != nil {
		t.Errorf("settled are %v, %v", out, err)
	}
	pushed, err := e.Push(t.Context(), []engine.Message{message("q", "waits", 0), message("other", "d", time.Hour)})
	if err != nil || !errors.Is(pushed[0].Err, engine.ErrUnavailable) || pushed[1].Err != nil {
		t.Errorf("pushed are %v, %v", pushed, err)
	}
	errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "waits"}, {Queue: "other", Key: "c"}})
	if err != nil || !errors.Is(errs[0], engine.ErrUnavailable) || errs[1] != nil {
		t.Errorf("cancelled are %v, %v", errs, err)
	}
	d.Hook(nil)
	if out, err := e.Settle(t.Context(), all[:1]); err != nil || out[0].Err != nil {
		t.Errorf("settled is %v, %v", out, err)
	}
	if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "waits"}}); err != nil || errs[0] != nil {
		t.Errorf("cancelled is %v, %v", errs, err)
	}
	must(t, e.Close())
}

// TestLapseOfWhatTheDiskDoesNotGive: the last lease of a message is over, and what is to become of it cannot be
// read. All else that is asked of the queue, and of others, is answered; the message dies once it can.
func TestLapseOfWhatTheDiskDoesNotGive(t *testing.T) {
	d, _, e, clock, spoil := notGiving(t, diskengine.Config{})
	m := blockful("q", "a", 0)
	m.MaxAttempts = 1
	must(t, pushAll(t, e, m))
	must(t, e.Flush(t.Context()))
	lease(t, e, "q", 1)
	spoil()
	clock.Advance(2 * time.Hour)
	must(t, pushAll(t, e, message("other", "x", time.Hour), message("q", "y", 0), message("other", "z", time.Hour)))
	settle(t, e, lease(t, e, "q", 1), engine.Ack)
	if _, err := e.Queue(t.Context(), "q"); err != nil {
		t.Error(err)
	}
	if all, _, err := e.Queues(t.Context(), "", 10); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	d.Hook(nil)
	clock.Advance(time.Minute)
	if info, err := e.Queue(t.Context(), "q"); err != nil || info.Dead != 1 || info.Leased != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	must(t, e.Close())
}

// TestOpenOfWhatTheDiskDoesNotGive opens a store of which somebody is leased who cannot be read, and one that
// was purged where that could not be read.
func TestOpenOfWhatTheDiskDoesNotGive(t *testing.T) {
	t.Run("leased", func(t *testing.T) {
		_, p, e, _, spoil := notGiving(t, diskengine.Config{})
		must(t, pushAll(t, e, blockful("q", "a", 0)))
		must(t, e.Flush(t.Context()))
		lease(t, e, "q", 1)
		must(t, e.Close())
		spoil()
		must(t, p.open(t).Close())
	})
	t.Run("purged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var log lines
			_, p, e, _, spoil := notGiving(t, diskengine.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			for i := range 20 {
				must(t, pushAll(t, e, blockful("q", fmt.Sprint(i), time.Duration(i)*time.Hour)))
			}
			must(t, e.Flush(t.Context()))
			must(t, pushAll(t, e, message("q", "held", 0)))
			lease(t, e, "q", 2) // so that it is looked who is purged
			spoil()
			if _, err := e.Purge(t.Context(), "q", 0); !errors.Is(err, syscall.EIO) {
				t.Errorf("a purge of what cannot be read: %v", err)
			}
			time.Sleep(time.Minute)
			if n := strings.Count(log.String(), "a purge failed"); n < 5 || n > 15 {
				t.Errorf("it was tried %d times in a minute", n)
			}
			must(t, e.Close())
			must(t, p.open(t).Close())
		})
	})
}

// lines is a log that is read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestRememberedThatTheDiskDoesNotGive: what a queue remembers cannot be read. What waits in it is leased, and
// what others remember is forgotten in time.
func TestRememberedThatTheDiskDoesNotGive(t *testing.T) {
	_, _, e, clock, spoil := notGiving(t, diskengine.Config{})
	for _, queue := range []string{"a", "b"} {
		m := message(queue, "k", 0)
		m.Remember = time.Minute
		must(t, pushAll(t, e, m))
		settle(t, e, lease(t, e, queue, 1), engine.Ack)
		if queue == "a" {
			must(t, e.Flush(t.Context()))
		}
	}
	spoil()
	clock.Advance(time.Hour)
	must(t, e.Tidy())
	if info, err := e.Queue(t.Context(), "b"); err != nil || info.Finished != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	must(t, pushAll(t, e, message("a", "live", 0)))
	settle(t, e, lease(t, e, "a", 1), engine.Ack)
	must(t, e.Close())
}

// TestRoomBesideWhatTheDiskDoesNotGive: the table of leases is full, and among them are some that are over and
// of messages that cannot be read. Others get their places.
func TestRoomBesideWhatTheDiskDoesNotGive(t *testing.T) {
	_, _, e, clock, spoil := notGiving(t, diskengine.Config{MaxLeases: 4})
	must(t, pushAll(t, e, blockful("q", "a", 0), blockful("q", "b", 0)))
	must(t, e.Flush(t.Context()))
	lease(t, e, "q", 2)
	clock.Advance(2 * time.Hour)
	_, err := e.Queue(t.Context(), "q")
	must(t, errors.Join(err, e.Pause(t.Context(), "q", 0)))
	for i := range 4 {
		must(t, pushAll(t, e, message("other", fmt.Sprint(i), 0)))
	}
	spoil()
	if got := lease(t, e, "other", 4); len(got) != 2 { // as many are left for others
		t.Errorf("%d are leased", len(got))
	}
	must(t, e.Close())
}
