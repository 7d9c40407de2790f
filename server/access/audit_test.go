package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// disk is where a log lies; it takes no more than it has room for.
type disk struct {
	mu sync.Mutex
	bytes.Buffer
	room int
}

func (d *disk) has(room int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = room
}

var errFull = errors.New("no space left on device")

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(p), d.room)
	d.room -= n
	d.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestAuditOfAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, log, lost := &disk{room: 1 << 20}, new(bytes.Buffer), 0
		a := NewAudit(d)
		a.Logger = slog.New(slog.NewTextHandler(log, nil))
		a.Lost = func() { lost++ }
		a.Note("what", "pause", "queue", "first")
		if err := a.Trouble(); err != nil || lost != 0 {
			t.Fatal(err, lost)
		}
		d.has(10)
		for range 300 {
			a.Note("what", "purge", "queue", "q")
		}
		if err := a.Trouble(); !errors.Is(err, errFull) || err.Error() != "no space left on device; lines missing: 300" || lost != 300 {
			t.Error(err, lost)
		}
		if n := strings.Count(log.String(), "\n"); n != 100 || !strings.Contains(log.String(), `\"what\":\"purge\",\"queue\":\"q\"`) || !strings.Contains(log.String(), "no space left") {
			t.Errorf("%d lines were logged, such as %.300s", n, log)
		}
		d.has(1 << 20)
		if a.Trouble() == nil {
			t.Error("it was tried again at once")
		}
		time.Sleep(retryAfter)
		synctest.Wait()
		if err := a.Trouble(); err != nil { // without a change by anybody
			t.Error(err)
		}
		a.Close()
		a.Note("what", "resume", "queue", "last")
		lines := strings.Split(strings.TrimSuffix(d.String(), "\n"), "\n")
		if len(lines) != 4 {
			t.Fatalf("%d lines: %s", len(lines), d)
		}
		for i, want := range map[int]string{0: `"queue":"first"`, 2: `"what":"lines lost","count":300`, 3: `"queue":"last"`} {
			if !json.Valid([]byte(lines[i])) || !strings.Contains(lines[i], want) {
				t.Errorf("line %d is %s", i+1, lines[i])
			}
		}
	})
}

// hung is where a log lies that takes nothing until it is let.
type hung chan struct{}

func (h hung) Write(p []byte) (int, error) {
	<-h
	return len(p), nil
}

func TestAuditsTroubleWaitsForNoLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := make(hung)
		a := NewAudit(h)
		go a.Note("what", "pause", "queue", "q")
		synctest.Wait()
		if err := a.Trouble(); err != nil {
			t.Error(err)
		}
		close(h)
	})
}
