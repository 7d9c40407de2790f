package diskengine_test

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// tally is a file system that counts the bytes written to it, by cause.
type tally struct {
	vfs.FS
	mu sync.Mutex
	by map[string]int64
}

// cause is why a file is written.
func cause(name string) string {
	switch {
	case strings.HasSuffix(name, ".log"):
		return "log"
	case !strings.HasSuffix(name, ".run"):
		return "other" // deletion bitmaps, manifest
	case bytes.Contains(debug.Stack(), []byte("MergeTables")):
		return "merge"
	}
	return "flush"
}

func (c *tally) file(f vfs.File, err error, name string) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &tallied{File: f, c: c, cause: cause(name)}, nil
}

// Create implements vfs.FS.
func (c *tally) Create(name string) (vfs.File, error) {
	f, err := c.FS.Create(name)
	return c.file(f, err, name)
}

// Open implements vfs.FS.
func (c *tally) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	return c.file(f, err, name)
}

type tallied struct {
	vfs.File
	c     *tally
	cause string
}

// WriteAt implements io.WriterAt.
func (f *tallied) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	if f.cause == "log" && len(bytes.TrimLeft(p, "\x00")) == 0 {
		return n, err // it only takes space ahead
	}
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.c.by[f.cause] += int64(n)
	return n, err
}

// TestHandledSoonIsWrittenOnce has messages pushed, leased and acked, of which always about a
// thousand wait: nothing of them but their records is written, and the log is let go all the same.
func TestHandledSoonIsWrittenOnce(t *testing.T) {
	const n, batch, waits, limit = 20_000, 250, 4, 400
	c := &tally{FS: disktest.New(nil), by: make(map[string]int64)}
	e := place{c, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 128 << 10, SpanBytes: 1 << 20}}.open(t)
	defer e.Close()
	var leased []string
	for i := range n/batch + waits {
		if i < n/batch {
			msgs := make([]engine.Message, batch)
			for k := range msgs {
				msgs[k] = message("q", fmt.Sprint("order-", i*batch+k), 0)
				msgs[k].Body = noise(200)
			}
			if err := pushAll(t, e, msgs...); err != nil {
				t.Fatal(err)
			}
		}
		if i < waits {
			continue
		}
		if i == n/batch/2 { // a busy machine may not have come to it
			reads(t, e, "disk_flushes", "", positive)
		}
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: batch, TTR: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		settle(t, e, g.Queues[0].Messages, engine.Ack)
		for _, l := range g.Queues[0].Messages {
			leased = append(leased, l.Key)
		}
	}
	if len(leased) != n {
		t.Fatalf("%d of %d were leased", len(leased), n)
	}
	reads(t, e, "disk_flushes", "", func(n float64) bool { return n >= 2 }) // the log is let go
	c.mu.Lock()
	defer c.mu.Unlock()
	total := int64(0)
	for _, v := range c.by {
		total += v
	}
	if t.Logf("%v", c.by); c.by["flush"] > 0 || total > n*limit {
		t.Errorf("%d bytes were written for each, %d of them to sstables; want at most %d and none", total/n, c.by["flush"]/n, limit)
	}
}
