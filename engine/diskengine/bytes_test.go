//go:build unix

package diskengine_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

var (
	bytesOf = flag.Int("bytes-of", 400_000, "messages of each turn of BenchmarkBytes")
	scaled  = flag.Int("bytes-scale", 50, "by how much less memory, log and sstables have in it than by default")
)

// tally is a file system that counts, by cause, what the device under it has to write: with each
// sync of a file the pages of it that were changed since the last one.
type tally struct {
	vfs.FS
	mu    sync.Mutex
	by    map[string]int64 // bytes, by cause
	syncs int
}

const page = 4096

// cause is why a file is written.
func cause(name string) string {
	switch {
	case strings.HasSuffix(name, ".log"):
		return "log"
	case !strings.HasSuffix(name, ".run"):
		return "other" // deletion bitmaps, manifest
	case bytes.Contains(debug.Stack(), []byte("mergeTables")):
		return "merge"
	}
	return "flush"
}

func (c *tally) file(f vfs.File, err error, name string) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &tallied{File: f, c: c, cause: cause(name), dirty: make(map[int64]bool)}, nil
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
	dirty map[int64]bool // pages
	fresh int64          // bytes that were written to them
}

// WriteAt implements io.WriterAt.
func (f *tallied) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	for at := off / page; at*page < off+int64(n); at++ {
		f.dirty[at] = true
	}
	by := f.cause
	if by == "log" && len(bytes.TrimLeft(p, "\x00")) == 0 {
		by = "zeros"
	}
	f.c.by[by] += int64(n)
	f.fresh += int64(n)
	return n, err
}

// Sync implements vfs.File.
func (f *tallied) Sync() error {
	f.c.mu.Lock()
	f.c.by["rest of pages"] += int64(len(f.dirty))*page - f.fresh
	f.fresh = 0
	clear(f.dirty)
	if f.cause == "log" {
		f.c.syncs++
	}
	f.c.mu.Unlock()
	return f.File.Sync()
}

// report reports bytes a message.
func (c *tally) report(b *testing.B, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := int64(0)
	for by, v := range c.by {
		total += v
		b.ReportMetric(float64(v)/float64(n), strings.ReplaceAll(by, " ", "-")+"-B/msg")
	}
	b.ReportMetric(float64(total)/float64(n), "all-B/msg")
	b.ReportMetric(float64(n)/float64(c.syncs), "msgs/sync")
	b.ReportMetric(0, "ns/op")
}

// TestHandledSoonIsWrittenOnce has messages pushed, leased and acked, of which always about a
// thousand wait: nothing of them but their records is written, and the log is let go all the same.
func TestHandledSoonIsWrittenOnce(t *testing.T) {
	const n, batch, waits, limit = 20_000, 250, 4, 400
	c := &tally{FS: vfstest.New(nil), by: make(map[string]int64)}
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

// BenchmarkBytes counts what of each message goes to the device and why, which the speed of the
// machine changes little: of messages that are due in two days, and of messages that are leased and
// acked soon, pushed one by one by 64 clients or in batches of 100 by 8. All that is sized is
// -bytes-scale times smaller than by default, so that as many merges come of -bytes-of messages as
// of that many times more; merges have ended when it is counted.
func BenchmarkBytes(b *testing.B) {
	for _, body := range []string{"hex", "json", "random"} {
		b.Run("far/body="+body, func(b *testing.B) { countBytes(b, 8, 100, body, 48*time.Hour) })
	}
	b.Run("soon/batch=100", func(b *testing.B) { countBytes(b, 8, 100, "hex", 0) })
	b.Run("soon/batch=1", func(b *testing.B) { countBytes(b, 64, 1, "hex", 0) })
	b.Run("far/batch=1", func(b *testing.B) { countBytes(b, 64, 1, "hex", 48*time.Hour) })
}

func countBytes(b *testing.B, clients, batch int, body string, spread time.Duration) {
	scale := int64(*scaled)
	c := &tally{FS: vfs.OS{}, by: make(map[string]int64)}
	p := place{c, filepath.Join(b.TempDir(), "store"), diskengine.Config{Logger: quiet}, diskengine.Tune{
		SegmentBytes: 32 << 20 / scale, MemtableBytes: 256 << 20 / 3 / scale, SpanBytes: 128 << 20 / scale}}
	e := p.open(b)
	defer e.Close()
	n := *bytesOf
	cpu := usedTime(b)
	each(b, clients, n, batch, func(ctx context.Context, from, to int) error {
		msgs := make([]engine.Message, 0, to-from)
		for i := from; i < to; i++ {
			rng := rand.New(rand.NewPCG(uint64(i), 48))
			m := message("q", fmt.Sprint("order-", i), 0)
			if spread > 0 {
				m.Due.In = time.Minute + time.Duration(rng.Int64N(int64(spread)))
			}
			m.Body = bodyOf(body, i, rng)
			msgs = append(msgs, m)
		}
		if err := pushAll(b, e, msgs...); err != nil {
			return err
		}
		if spread > 0 {
			return nil
		}
		g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: batch, TTR: time.Minute}})
		if err != nil {
			return err
		}
		acks := make([]engine.Settlement, len(g.Queues[0].Messages))
		for i, l := range g.Queues[0].Messages {
			acks[i] = engine.Settlement{Token: l.Token, Do: engine.Ack}
		}
		_, err = e.Settle(ctx, acks)
		return err
	})
	is := func(name string) float64 { return enginetest.FigureOf(b, e, name, "") }
	for was := -1.0; is("disk_merges")+is("disk_flushes") != was; time.Sleep(time.Second) {
		was = is("disk_merges") + is("disk_flushes")
	}
	b.ReportMetric(is("disk_merges"), "merges")
	b.ReportMetric(is("disk_flushes"), "flushes")
	b.ReportMetric(float64((usedTime(b)-cpu).Nanoseconds())/float64(n), "cpu-ns/msg")
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	c.report(b, n)
}

// each has clients do something with all numbers below n, so many a call.
func each(b *testing.B, clients, n, batch int, do func(ctx context.Context, from, to int) error) {
	var group sync.WaitGroup
	next := make(chan int)
	for range clients {
		group.Go(func() {
			for from := range next {
				if err := do(b.Context(), from, min(n, from+batch)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for from := 0; from < n; from += batch {
		next <- from
	}
	close(next)
	group.Wait()
}

// bodyOf is one of about 200 bytes: hexadecimal digits, a document, or bytes at random.
func bodyOf(kind string, i int, rng *rand.Rand) []byte {
	switch kind {
	case "hex":
		return fmt.Appendf(nil, "%0200x", noiseOf(rng, 100))
	case "json":
		const names = "anna bertil carla david eva felix greta hans ida jonas kira leon mona nils olga paul"
		name := strings.Fields(names)[rng.IntN(16)]
		return fmt.Appendf(nil, `{"order":"%d-%06d","customer":{"id":%d,"name":"%s","mail":"%s%d@example.com"},"total":"%d.%02d","currency":"EUR","items":[{"sku":"%c%c-%05d","quantity":%d}],"placed":"2026-11-%02dT%02d:%02d:%02dZ"}`,
			100+i/1000, rng.IntN(1e6), rng.IntN(1e7), name, name, rng.IntN(1000), rng.IntN(500), rng.IntN(100),
			'A'+rng.IntN(26), 'A'+rng.IntN(26), rng.IntN(1e5), 1+rng.IntN(4), 1+rng.IntN(30), rng.IntN(24), rng.IntN(60), rng.IntN(60))
	}
	return noiseOf(rng, 200)
}

func usedTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
