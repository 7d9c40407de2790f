package wal

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// bare is the least that makes records durable: they are appended to one file that was
// written before, and all who wait share a sync. It is what Log is measured by.
type bare struct {
	file vfs.File
	mu   sync.Mutex
	cond *sync.Cond
	buf  []byte
	next chan struct{}
	stop bool
	done chan struct{}
}

const bareSize = 64 << 20

func newBare(b *testing.B, dir string) *bare {
	f, err := vfs.OS{}.Create(filepath.Join(dir, "bare"))
	must(b, err)
	for off := int64(0); off < bareSize; off += int64(len(zeros)) {
		_, err := f.WriteAt(zeros[:], off)
		must(b, err)
	}
	must(b, f.Sync())
	l := &bare{file: f, next: make(chan struct{}), done: make(chan struct{})}
	l.cond = sync.NewCond(&l.mu)
	go l.run(b)
	return l
}

func (l *bare) run(b *testing.B) {
	defer close(l.done)
	spare, off := []byte(nil), int64(0)
	for {
		l.mu.Lock()
		for len(l.buf) == 0 && !l.stop {
			l.cond.Wait()
		}
		buf, done := l.buf, l.next
		l.buf, l.next = spare[:0], make(chan struct{})
		l.mu.Unlock()
		if len(buf) == 0 {
			return
		}
		crc32.Checksum(buf, castagnoli)
		if off+int64(len(buf)) > bareSize {
			off = 0
		}
		if _, err := l.file.WriteAt(buf, off); err != nil {
			b.Error(err)
		}
		if err := l.file.Sync(); err != nil {
			b.Error(err)
		}
		off, spare = off+int64(len(buf)), buf
		close(done)
	}
}

func (l *bare) add(rec []byte, n int) {
	l.mu.Lock()
	for range n {
		l.buf = append(l.buf, rec...)
	}
	done := l.next
	l.cond.Signal()
	l.mu.Unlock()
	<-done
}

func (l *bare) close() error {
	l.mu.Lock()
	l.stop = true
	l.cond.Signal()
	l.mu.Unlock()
	<-l.done
	return l.file.Close()
}

// BenchmarkBesideBare measures the log beside a bare one, in rounds that alternate, on the
// disk of the directory for temporary files: records a second of each, and the median of
// the quotients of the rounds. A batch is one entry of the log.
func BenchmarkBesideBare(b *testing.B) {
	const record, rounds = 200, 10
	for _, writers := range []int{64, 512} {
		for _, batch := range []int{1, 100} {
			b.Run(fmt.Sprintf("writers=%d/batch=%d", writers, batch), func(b *testing.B) {
				dir := b.TempDir()
				plain := newBare(b, dir)
				must(b, os.Mkdir(filepath.Join(dir, "log"), 0o750))
				l, _, err := Open(vfs.OS{}, filepath.Join(dir, "log"),
					&Config{SegmentBytes: 8 << 20, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}, 0, func(Entry) error { return nil })
				must(b, err)
				rec, many := text(1, record), text(1, record*batch)
				appended := func() {
					end, err := l.Append(1, many)
					if err == nil {
						err = l.Wait(context.Background(), end)
					}
					if err != nil {
						b.Error(err)
					}
					if end%(1<<20) < Pos(len(many)) {
						l.Release(l.Synced())
					}
				}
				run := func(calls int, call func()) float64 {
					var next atomic.Int64
					var wg sync.WaitGroup
					start := time.Now()
					for range writers {
						wg.Go(func() {
							for next.Add(1) <= int64(calls) {
								call()
							}
						})
					}
					wg.Wait()
					return float64(calls*batch) / time.Since(start).Seconds()
				}
				for l.End() < 64<<20 { // as the other's file: each segment was written once
					run(512, func() {
						if _, err := l.Append(1, make([]byte, 50_000)); err != nil {
							b.Error(err)
						}
					})
					must(b, l.Wait(context.Background(), l.End()))
					l.Release(l.Synced())
				}
				calls := max(1, b.N/batch/rounds)
				var quotients, ours, bares []float64
				b.ResetTimer()
				for i := range rounds {
					var x, y float64
					if i%2 == 0 {
						x, y = run(calls, appended), run(calls, func() { plain.add(rec, batch) })
					} else {
						y, x = run(calls, func() { plain.add(rec, batch) }), run(calls, appended)
					}
					ours, bares, quotients = append(ours, x), append(bares, y), append(quotients, x/y)
				}
				b.StopTimer()
				for _, s := range [][]float64{ours, bares, quotients} {
					slices.Sort(s)
				}
				b.ReportMetric(ours[rounds/2], "log/s")
				b.ReportMetric(bares[rounds/2], "bare/s")
				b.ReportMetric(quotients[rounds/2], "of-bare")
				b.ReportMetric(0, "ns/op")
				must(b, l.Close())
				must(b, plain.close())
			})
		}
	}
}
