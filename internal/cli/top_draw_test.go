package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

var topNow = time.Date(2030, 3, 1, 12, 0, 0, 0, time.UTC)

func ms(v float64) *float64 { return &v }

// liveQueue is a queue as a server tells of it.
func liveQueue(name string, ready int64, p99 float64) wire.LiveQueue {
	q := wire.LiveQueue{Queue: name, Scheduled: 3, Ready: ready, NextDue: wire.Time{Time: topNow.Add(90 * time.Second)}, PushedPerS: 2, AckedPerS: 1.25, Trend: new(wire.Happened)}
	if ready > 0 {
		q.OldestReady = wire.Time{Time: topNow.Add(-5 * time.Second)}
	}
	if p99 > 0 {
		q.Trend.Lateness = wire.Times{Count: 9, P50: ms(p99 / 2), P99: ms(p99), Max: ms(2 * p99)}
	}
	return q
}

// emptyScreen was told nothing yet, and asks nobody.
func emptyScreen(width, height int) *topScreen {
	p := Program{Now: func() time.Time { return topNow }}
	s := p.topScreen(context.Background(), nil, &topFlags{late: tardy, by: boardColumns[0]}, watched{Server: "http://127.0.0.1:8277", Version: "v1.2.3", Engine: "http+mem"})
	s.width, s.height, s.now = width, height, topNow
	return s
}

// shownScreen was told of queues.
func shownScreen(width, height int, queues ...wire.LiveQueue) *topScreen {
	s := emptyScreen(width, height)
	s.Update(news{queues: queues, whole: true, state: live})
	return s
}

// text is what is drawn, without styles.
func (s *topScreen) text() string { return ansi.Strip(s.draw()) }

func (s *topScreen) keys(keys ...string) *topScreen {
	for _, k := range keys {
		s.draw() // as a screen does, after each key
		text := k
		if len(k) > 1 {
			text = ""
		}
		s.press(k, text)
	}
	return s
}

func contains(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing:\n%s", w, text)
		}
	}
}

func lacks(t *testing.T, text string, not ...string) {
	t.Helper()
	for _, n := range not {
		if strings.Contains(text, n) {
			t.Errorf("%q is there:\n%s", n, text)
		}
	}
}

func TestTopDrawsTheQueues(t *testing.T) {
	late := liveQueue("mail", 4, 12.5)
	late.OldestReady = wire.Time{Time: topNow.Add(-time.Minute)}
	s := shownScreen(100, 24, liveQueue("order.unpaid", 0, 0), late)
	contains(t, s.text(), "tarry top  live  12:00:00Z  http://127.0.0.1:8277  v1.2.3  http+mem\n",
		"2 queues: 6 scheduled, 4 ready, 0 leased, 0 dead; 4/s in, 2.50/s out\n",
		"! mail: 4 messages are due, the oldest for 1m, and nobody works on the queue  start a worker",
		"QUEUEv                          READY  SCHED LEASED   DEAD    P50    P99   IN/S  OUT/S   NEXT OLDEST",
		"mail                                4      3      0      0  6.2ms   13ms      2   1.25  1m30s     1m",
		"order.unpaid                        0      3      0      0      -      -      2   1.25  1m30s      -",
		"1-2 of 2  ? help")
	s = shownScreen(80, 24)
	contains(t, s.text(), "no problems", "no queues", "0-0 of 0")
	contains(t, emptyScreen(80, 24).text(), "connecting", "not known yet")
	contains(t, shownScreen(50, 24, late).text(), "QUEUEv           READY  SCHED LEASED   DEAD    P50\n")
}

// Whatever the size and the page, nothing is drawn beyond it.
func TestTopFitsAnySize(t *testing.T) {
	queues := []wire.LiveQueue{liveQueue("日本語のキュー名前です", 1, 3), liveQueue(strings.Repeat("long", 50), 7, 9e9), liveQueue("e\u0301\u0301\u0301", 0, 1)}
	queues[1].OldestReady, queues[1].Scheduled, queues[1].Paused = wire.Time{Time: topNow.Add(-1e6 * time.Hour)}, 1<<62, true
	for width := range 130 {
		for _, height := range []int{0, 1, 2, 3, 4, 5, 8, 24, 60} {
			for _, key := range []string{"", "enter", "?", "!", "/"} {
				s := shownScreen(width, height, queues...).keys(key)
				s.forecast = forecast{queue: s.open, answer: tarry.Forecast{Buckets: make([]tarry.Bucket, 60)}}
				s.forecast.answer.Buckets[7].Count = 1 << 50
				lines := strings.Split(s.draw(), "\n")
				if len(lines) != max(1, height) && width > 0 {
					t.Fatalf("%d×%d %q: %d lines", width, height, key, len(lines))
				}
				for _, l := range lines {
					if n := ansi.StringWidth(l); n > width {
						t.Fatalf("%d×%d %q: %d wide: %q", width, height, key, n, l)
					}
				}
			}
		}
	}
	contains(t, shownScreen(40, 12, queues...).text(), "READY", "LEASED", "live")
}

// What a terminal would obey does not reach it, wherever it stands.
func TestTopObeysNobody(t *testing.T) {
	evil := "a\x1b]0;owned\x07\x1b[2Jb\u202ec\u009b31m\r\n"
	q := liveQueue(evil, 3, 1)
	q.OldestReady = wire.Time{Time: topNow.Add(-time.Hour)}
	s := shownScreen(300, 40, q)
	s.Server, s.Version, s.Engine = evil, evil, evil
	s.Update(beyond{{"server", "", evil, evil}})
	s.board.filter = evil
	for _, key := range []string{"", "/", "esc", "enter", "!", "?"} {
		s.keys(key)
		s.forecast = forecast{queue: evil, err: errors.New(evil)}
		s.state, s.why = reconnecting, evil
		text := s.text() // without the styles, which are ours
		if strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), obeyed) || strings.Contains(s.draw(), "\x1b]") || strings.Contains(s.draw(), "\x1b[2J") {
			t.Errorf("after %q: %q", key, s.draw())
		}
	}
}

func TestTopSortsFiltersAndMoves(t *testing.T) {
	var queues []wire.LiveQueue
	for i := range 10_000 {
		queues = append(queues, liveQueue(fmt.Sprintf("q%04d", i), int64(i%7), float64((i*7919)%10_000)))
	}
	s := shownScreen(80, 24, queues...)
	rows := func() (names []string) {
		for l := range strings.SplitSeq(s.text(), "\n") {
			if strings.HasPrefix(l, "q") && len(l) > 5 {
				names = append(names, l[:5])
			}
		}
		return names
	}
	see := func(first string, n int) {
		t.Helper()
		if got := rows(); len(got) != n || got[0] != first {
			t.Errorf("%d rows, the first %v; want %d, %s", len(got), got[:min(1, len(got))], n, first)
		}
	}
	s.draw()
	see("q0000", s.room)
	s.keys("pgdown", "down")
	if s.selected != fmt.Sprintf("q%04d", s.room+1) {
		t.Errorf("the cursor is on %q", s.selected)
	}
	see("q0002", s.room)
	s.keys("end")
	contains(t, s.text(), "of 10000  ?", "q9999")
	s.keys("home", "r") // most ready first, then by name
	see("q0006", s.room)
	s.keys("r")
	see("q0000", s.room)
	s.keys("9")
	if late := s.board.shown[0].Trend.Lateness.P99; *late != 9999 || s.board.shown[9999].Trend.Lateness.P99 != nil {
		t.Errorf("the latest is %v ms late", *late)
	}
	s.keys("/", "Q", "0", "0", "1", "7", "backspace", "enter", "n")
	see("q0010", 10)
	s.keys("down", "down")
	s.Update(news{queues: []wire.LiveQueue{liveQueue("q001", 1, 0)}, state: live})
	if s.selected != "q0012" || s.board.shown[s.cursor].Queue != "q0012" {
		t.Errorf("the cursor has moved to %q", s.board.shown[s.cursor].Queue)
	}
	s.keys("/", "x", "esc") // as it was before
	see("q001 ", 11)
	s.keys("/")
	s.Update(tea.PasteMsg{Content: strings.Repeat("x", maxFilter+1)})
	s.Update(tea.PasteMsg{Content: " 99\n"})
	contains(t, s.text(), "/Q00199 ", "no queues")
	s.keys("enter", "esc", "R", "home")
	see("q9999", s.room)
	s.keys("R", ">", "<", "<")
	if s.board.sort.name != "oldest" {
		t.Errorf("sorted by %s", s.board.sort.name)
	}
}

func TestTopDrawsAQueue(t *testing.T) {
	q := liveQueue("mail", 2, 7)
	q.Trend.Acked, q.Trend.Died = 10, 1
	s := shownScreen(80, 24, q)
	s.keys("enter")
	contains(t, s.text(), "\nmail\n", "due in the next hour, by the minute: not known yet")
	answer := tarry.Forecast{Buckets: make([]tarry.Bucket, 60), Overdue: 3}
	for i := range answer.Buckets {
		answer.Buckets[i] = tarry.Bucket{From: topNow.Add(time.Duration(i) * time.Minute), Count: int64(i % 3)}
	}
	answer.Buckets[7].Count = 500
	s.Update(forecast{queue: "mail", asked: topNow, answer: answer})
	contains(t, s.text(), "3 scheduled, 2 ready, 0 leased, 0 dead, 0 keys remembered", "next due in 1m30s, oldest ready 5s ago",
		"in 5m: 10 handled, 0 retried, 1 died; lateness p50 3.5ms, p99 7.0ms, worst 14ms", "by the minute: 559, most 500 at 12:07; 3 overdue",
		"\n12:01              1  #\n12:02              2  #\n12:04 ", "\n12:07            500  "+strings.Repeat("#", 40), "Esc back")
	lacks(t, s.text(), "12:59")
	contains(t, s.keys("end").text(), "12:59")
	lacks(t, s.text(), "12:01")
	s.keys("h")
	contains(t, s.text(), "the next 2 days, by the hour: not known yet")
	s.keys("tab", "?")
	contains(t, s.text(), "99 of 100 were no later")
	s.keys("?")
	contains(t, s.text(), "the next 60 days, by the day: not known yet")
	s.Update(forecast{queue: "mail", zoom: s.zoom, err: tarry.ErrUnsupported})
	contains(t, s.text(), "by the day: not supported by this engine")
	s.keys("esc")
	contains(t, s.text(), "1-1 of 1")
	q.Trend = nil
	contains(t, shownScreen(80, 24, q).keys("enter").text(), "how late messages were: not known")
}

// The forecast of the open queue is asked for at once, and then from time to time.
func TestTopAsksForAForecast(t *testing.T) {
	s := shownScreen(80, 24, liveQueue("mail", 2, 7))
	asks := func(want bool, what string) {
		t.Helper()
		if (s.ask() != nil) != want {
			t.Errorf("%s: asked is %v", what, !want)
		}
	}
	asks(false, "of the table")
	s.keys("enter")
	asks(true, "of an open queue")
	asks(false, "while that is asked")
	s.Update(forecast{queue: "mail", asked: topNow})
	asks(false, "when it is known")
	s.keys("h")
	asks(true, "of another span")
	s.Update(forecast{queue: "mail", zoom: 1, asked: topNow})
	s.now = topNow.Add(askEvery)
	asks(true, "later")
}

// A lost connection is told of, with what is shown.
func TestTopSaysThatItIsOld(t *testing.T) {
	s := shownScreen(100, 24, liveQueue("mail", 0, 0))
	s.Update(news{state: reconnecting, why: "the server stops"})
	contains(t, s.text(), "reconnecting  12:00", "what is shown is old: the server stops", "\nmail ")
	s.Update(news{state: silentStore})
	contains(t, s.text(), "the store does not answer  12:00", "what is shown is old")
	s.Update(news{whole: true, state: live, skew: time.Hour})
	contains(t, s.text(), "live  13:00", "no queues")
	lacks(t, s.text(), "old")
	if _, quit := s.Update(news{err: tarry.ErrForbidden}); quit == nil || s.err == nil {
		t.Error("it goes on with what refuses it")
	}
}

func TestTopProblems(t *testing.T) {
	var queues []wire.LiveQueue
	for i := range 50 {
		q := liveQueue(fmt.Sprintf("q%02d", i), 1, 0)
		q.OldestReady = wire.Time{Time: topNow.Add(-time.Hour)}
		queues = append(queues, q)
	}
	queues[3].Paused, queues[4].Leased, queues[5] = true, 2, liveQueue("q05", 0, 31_000)
	s := shownScreen(120, 24, queues...)
	s.Update(beyond{{"not_ready", "", "no space left", "free some"}})
	contains(t, s.text(), "! no space left  free some\n! q00: 1 message is due, the oldest for 1h", "! and 48 problems; ! shows all")
	s.keys("!")
	contains(t, s.text(), "51 problems\n! no space left\n  free some\n", "! q00: ")
	s.keys("down", "down", "down", "down", "down", "down", "down", "down")
	contains(t, s.text(), "! q03: 1 message is due, the oldest for 1h, and the queue is paused\n  tarry resume q03 ends the pause\n! q04: ", "with 2 leases held", "! q05: of 9 messages handed out within 5m one in a hundred came later than 31s")
	s.keys("end", "!")
	contains(t, s.text(), "of 50  ?")
}

func TestTopForgetsWhatIsGone(t *testing.T) {
	s := shownScreen(80, 24, liveQueue("mail", 0, 0), liveQueue("news", 0, 0))
	gone := news{queues: []wire.LiveQueue{{Queue: "mail", Gone: true}, {Queue: "unknown", Gone: true}}, state: live}
	s.Update(gone)
	contains(t, s.text(), "2 queues", "\nmail ")
	gone.skew = stays
	s.Update(gone)
	lacks(t, s.text(), "mail", "unknown")
	b := s.board
	many := make([]wire.LiveQueue, maxBoard+1)
	for i := range many {
		many[i].Queue = fmt.Sprint(i)
	}
	b.take(&news{queues: many, whole: true}, topNow)
	if len(b.rows) != maxBoard || !b.more {
		t.Errorf("%d queues are kept, more: %v", len(b.rows), b.more)
	}
	b.take(&news{whole: true}, topNow)
	if len(b.rows) != 0 || b.more {
		t.Errorf("%d queues are left, more: %v", len(b.rows), b.more)
	}
}

func TestTopWritesFewCharacters(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 0.05: "0.05", 1.25: "1.25", 99.999: "100.00", 250.4: "250", 99_999: "99999", 100_000: "100k", 1.5e9: "1500M", 2e12: "2000G"} {
		if s := few(f); s != want {
			t.Errorf("%v: %s, want %s", f, s, want)
		}
	}
	for d := time.Microsecond; d < 9000*24*time.Hour; d = d*5/4 + 1 {
		if s := short(d); len(s) > 6 {
			t.Errorf("%s: %s", d, s)
		}
	}
}
