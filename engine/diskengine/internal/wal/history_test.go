package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// history is what a log was told and what it promised. Its entries are appended by one
// goroutine, so that where each stands is known before.
type history struct {
	mu      sync.Mutex
	items   []item
	end     Pos
	synced  Pos // promised
	from    Pos // all before is released
	counter int
}

// promised returns what holds at this instant: all entries that may be there, from the
// released ones on, and up to where they must be.
func (h *history) promised() (may []item, from, must Pos) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := len(h.items)
	for i > 0 && h.items[i-1].start >= h.from {
		i--
	}
	return h.items[i:len(h.items):len(h.items)], h.from, max(h.synced, h.from)
}

func (h *history) put(l *Log, n int) error {
	h.mu.Lock()
	h.counter++
	i := item{kind: byte(h.counter), bytes: text(h.counter, n), start: h.end}
	i.end = h.end + Pos(len(appendEntryHead(nil, i.kind, n))+n)
	h.items, h.end = append(h.items, i), i.end
	h.mu.Unlock()
	var end Pos
	var err error
	if h.counter%3 == 0 { // some are put together before
		head := n * (h.counter % 5) / 4
		middle := head + (n-head)*(h.counter%4)/3
		p := Prepare(max(0, head-h.counter%2*5), i.bytes[head:middle], onHeap) // sometimes with too little room
		end, err = l.AppendPrepared(i.kind, i.bytes[:head], p, i.bytes[middle:])
	} else {
		end, err = l.Append(i.kind, i.bytes)
	}
	if err == nil && end != i.end {
		err = fmt.Errorf("an entry ends at %d, not at %d", end, i.end)
	}
	return err
}

func (h *history) wait(t testing.TB, l *Log) error {
	h.mu.Lock()
	end := h.end
	h.mu.Unlock()
	if err := l.Wait(t.Context(), end); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.synced = max(h.synced, end)
	return nil
}

// written waits for the write, which promises nothing where the power goes.
func (h *history) written(t testing.TB, l *Log) error {
	h.mu.Lock()
	end := h.end
	h.mu.Unlock()
	return l.WaitWritten(t.Context(), end)
}

func (h *history) release(l *Log) {
	h.mu.Lock()
	h.from = h.synced
	from := h.from
	h.mu.Unlock()
	l.Release(from)
}

// reopened says where the log goes on.
func (h *history) reopened(end Pos) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.items) > 0 && h.items[len(h.items)-1].end > end {
		h.items = h.items[:len(h.items)-1]
	}
	h.end, h.synced = end, end
}

// run appends, waits, for syncs or writes only, and releases at random, n times.
func (h *history) run(t testing.TB, l *Log, rng *rand.Rand, n int) error {
	sizes := []int{0, 10, 200, 200, 200, 3000, 12000, 12000, 40000}
	for range n {
		var err error
		switch k := rng.IntN(20); {
		case k < 5:
			err = h.put(l, sizes[rng.IntN(len(sizes))])
		case k < 9:
			err = errors.Join(h.put(l, sizes[rng.IntN(len(sizes))]), h.written(t, l))
		case k < 18:
			err = errors.Join(h.put(l, sizes[rng.IntN(len(sizes))]), h.wait(t, l))
		case k == 18:
			h.release(l)
		default:
			time.Sleep(2 * time.Second)
		}
		if err != nil {
			return err
		}
		if rng.IntN(200) == 0 {
			if err := h.put(l, 2*minSegment); err != nil {
				return err
			}
		}
	}
	return nil
}

// verify opens a log and compares what it holds with what was promised.
func verify(d vfs.FS, cfg *Config, may []item, from, must Pos) (*Log, Found, error) {
	l, found, all, err := tryOpen(d, cfg, from)
	if err != nil {
		return nil, found, err
	}
	if found.End < must {
		err = fmt.Errorf("the log ends at %d, durable was %d", found.End, must)
	}
	if len(all) > len(may) {
		err = fmt.Errorf("%d entries, of at most %d", len(all), len(may))
	}
	for i := 0; i < len(all) && err == nil; i++ {
		if !all[i].is(may[i]) {
			err = fmt.Errorf("entry %d is %v, not %v", i, all[i], may[i])
		}
	}
	if len(all) > 0 && found.End != all[len(all)-1].end || len(all) == 0 && found.End != from {
		err = fmt.Errorf("%d entries from %d on, and the end is %d", len(all), from, found.End)
	}
	if err != nil {
		return nil, found, errors.Join(err, l.Close())
	}
	return l, found, nil
}

// goesOn verifies a log, appends to it, lets the power go once more and verifies again.
func goesOn(t testing.TB, d *disktest.Disk, cfg *Config, may []item, from, must Pos, seed uint64) error {
	l, found, err := verify(d, cfg, may, from, must)
	if err != nil {
		return err
	}
	h := &history{items: append([]item(nil), may...), from: from}
	h.reopened(found.End)
	h.counter = 1000
	for i := range 4 {
		// The same bytes that may stand there already.
		n := 200
		if left := len(h.items); i == 0 && left < len(may) {
			n = len(may[left].bytes)
			h.counter = int(may[left].kind) - 1
		}
		if err := errors.Join(h.put(l, n), h.wait(t, l)); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	_ = h.put(l, 5000)
	after := d.Crash(disktest.Seeded(seed))
	if seed%2 == 0 {
		after = d.Kill().Crash(disktest.Nothing())
	}
	if err := l.Close(); err != nil {
		return err
	}
	for _, d := range []*disktest.Disk{after, d} {
		all, from, must := h.promised()
		if l, _, err = verify(d, cfg, all, from, must); err != nil {
			return fmt.Errorf("the second time: %w", err)
		}
		if err := l.Close(); err != nil {
			return err
		}
		if n := d.Handles(); n != 0 {
			return fmt.Errorf("%d files are open", n)
		}
	}
	return nil
}
