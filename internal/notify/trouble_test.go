package notify_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/internal/notify"
)

var failing = notify.Trouble{Text: "it fails", Level: slog.LevelWarn}

// page is what was written to a log since it was read last.
type page struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *page) lines() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.buf.Reset()
	return strings.FieldsFunc(p.buf.String(), func(r rune) bool { return r == '\n' })
}

// in runs f in a bubble, with a Log and what tells the lines it wrote since the last time.
func in(t *testing.T, f func(t *testing.T, l *notify.TroubleLog, lines func() []string)) {
	synctest.Test(t, func(t *testing.T) {
		var p page
		f(t, notify.NewTroubleLog(slog.New(slog.NewTextHandler(&p, nil))), p.lines)
	})
}

func TestTheFirstThenOneAMinute(t *testing.T) {
	in(t, func(t *testing.T, l *notify.TroubleLog, lines func() []string) {
		for i := range 1000 {
			l.Note(failing, "q", "n", i)
		}
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "n=0 times=1") {
			t.Errorf("at first: %q", got)
		}
		time.Sleep(notify.TroubleInterval)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "n=999 times=999") {
			t.Errorf("after a minute: %q", got)
		}
		l.Note(failing, "q", "n", 1000)
		if got := lines(); len(got) != 0 {
			t.Errorf("within the next minute: %q", got)
		}
		time.Sleep(notify.TroubleInterval)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "n=1000 times=1") {
			t.Errorf("after two minutes: %q", got)
		}
		time.Sleep(2 * notify.TroubleInterval)
		l.Note(failing, "q", "n", 1001)
		if got := lines(); len(got) != 1 {
			t.Errorf("after a rest: %q", got)
		}
	})
}

func TestSeveralAreToldAtOnce(t *testing.T) {
	in(t, func(t *testing.T, l *notify.TroubleLog, lines func() []string) {
		kind := notify.Trouble{Text: "dead", Level: slog.LevelWarn, First: 3}
		for range 10 {
			l.Note(kind, "q")
		}
		if got := lines(); len(got) != 3 {
			t.Errorf("at first: %q", got)
		}
		l.Flush()
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "times=7") {
			t.Errorf("at the end: %q", got)
		}
	})
}

// However many queues there are: lines and memory are bounded, and nothing is left out.
func TestManyQueues(t *testing.T) {
	in(t, func(t *testing.T, l *notify.TroubleLog, lines func() []string) {
		for i := range 10_000 {
			l.Note(failing, fmt.Sprint("q", i))
		}
		got := lines()
		if len(got) > 40 {
			t.Fatalf("%d lines", len(got))
		}
		sum := len(got)
		time.Sleep(notify.TroubleInterval)
		for _, line := range lines() {
			var n int
			_, after, _ := strings.Cut(line, "times=")
			if _, err := fmt.Sscan(after, &n); err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if sum != 10_000 {
			t.Errorf("%d were told of 10,000", sum)
		}
		time.Sleep(2 * notify.TroubleInterval)
		l.Note(failing, "new") // what was told has left its place
		l.Note(failing, "newer")
		if got := lines(); len(got) != 2 {
			t.Errorf("afterwards: %q", got)
		}
	})
}
