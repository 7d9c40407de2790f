//go:build linux

package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

// bareLog is the least code that makes records durable: they are appended to one file that
// was written before, and all who wait share a sync. While one is under way the next
// records gather. When the file is full it is written from its beginning again.
type bareLog struct {
	file *os.File
	mu   sync.Mutex
	more sync.Cond // there is something to write, or no more to come
	buf  []byte
	next *barePush
	done bool
	end  chan struct{}
}

// barePush is what those wait for whose records are written together.
type barePush struct {
	done chan struct{}
	err  error
}

const bareSize = 64 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func openBare(dir string) (*bareLog, error) {
	f, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, 64<<10)
	for range bareSize / len(zeros) {
		if _, err := f.Write(zeros); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if err := f.Sync(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &bareLog{file: f, next: &barePush{done: make(chan struct{})}, end: make(chan struct{})}
	l.more.L = &l.mu
	go l.run()
	return l, nil
}

func (l *bareLog) run() {
	defer close(l.end)
	var spare []byte
	for at := int64(0); ; {
		l.mu.Lock()
		for len(l.buf) == 0 && !l.done {
			l.more.Wait()
		}
		buf, push := l.buf, l.next
		l.buf, l.next = spare[:0], &barePush{done: make(chan struct{})}
		l.mu.Unlock()
		if len(buf) == 0 {
			return
		}
		// Each write has its checksum before it, as that of any log has.
		binary.LittleEndian.PutUint32(buf, crc32.Checksum(buf[bareHead:], castagnoli))
		if at+int64(len(buf)) > bareSize {
			at = 0
		}
		_, push.err = l.file.WriteAt(buf, at)
		if push.err == nil {
			push.err = syscall.Fdatasync(int(l.file.Fd()))
		}
		at, spare = at+int64(len(buf)), buf
		close(push.done)
	}
}

const bareHead = 4

var bareRecords = sync.Pool{New: func() any { return new([]byte) }}

// append appends n records and waits until they are durable.
func (l *bareLog) append(n int, record func(b []byte, i int) []byte) error {
	records := bareRecords.Get().(*[]byte)
	for i := range n {
		*records = record(*records, i)
	}
	l.mu.Lock()
	if len(l.buf) == 0 {
		l.buf = append(l.buf, make([]byte, bareHead)...)
	}
	l.buf = append(l.buf, *records...)
	push := l.next
	l.more.Signal()
	l.mu.Unlock()
	*records = (*records)[:0]
	bareRecords.Put(records)
	<-push.done
	return push.err
}

// appendRecord appends what is kept of a message.
func appendRecord(b []byte, due int64, key string, body []byte) []byte {
	return append(append(binary.AppendVarint(b, due), key...), body...)
}

// Push does not look whether ctx has ended: nobody else would wait so short a time.
func (l *bareLog) Push(ctx context.Context, queue string, i int, due time.Time) error {
	return l.PushMany(ctx, queue, i, i+1, func(int) time.Time { return due })
}

func (l *bareLog) PushMany(_ context.Context, _ string, from, to int, due func(i int) time.Time) error {
	return l.append(to-from, func(b []byte, i int) []byte {
		return appendRecord(b, due(from+i).UnixMilli(), scenario.Key(from+i), scenario.Body(from+i))
	})
}

var errBare = errors.New("a bare log cannot do this")

func (l *bareLog) Cancel(context.Context, string, int) error           { return errBare }
func (l *bareLog) Empty(context.Context, string) (bool, error)         { return false, errBare }
func (l *bareLog) Work(b *testing.B, _ []string, _ func(i int)) func() { b.Fatal(errBare); return nil }

func (l *bareLog) Close() error {
	l.mu.Lock()
	l.done = true
	l.more.Signal()
	l.mu.Unlock()
	<-l.end
	return l.file.Close()
}
