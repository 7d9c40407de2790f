package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

// shownScreen is a screen that was told of queues.
func shownScreen(width, height int, queues ...wire.LiveQueue) *screen {
	s := &screen{where: "http://127.0.0.1:8277", version: "v1.2.3", engine: "http+mem", late: 30 * time.Second,
		width: width, height: height, now: topNow, board: newQueueBoard(boardColumns[0])}
	s.told(news{queues: queues, whole: true, link: link{up: true}})
	return s
}

// text is what is drawn, without styles.
func (s *screen) text() string { return ansi.Strip(s.draw()) }

func (s *screen) keys(keys ...string) *screen {
	for _, k := range keys {
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
	contains(t, s.text(), "tarry top  http://127.0.0.1:8277  v1.2.3  http+mem", "live  12:00:00Z\n",
		"2 queues: 6 scheduled, 4 ready, 0 leased, 0 dead; 4.00/s in, 2.50/s out\n",
		"! mail: 4 messages are due, the first since 1m, and nobody works on the queue  start a worker",
		"QUEUE▼                          READY  SCHED LEASED   DEAD    P50    P99   IN/S  OUT/S   NEXT OLDEST",
		"mail                                4      3      0      0  6.2ms   12ms   2.00   1.25  1m30s  1m00s",
		"order.unpaid                        0      3      0      0      -      -   2.00   1.25  1m30s      -",
		"1-2 of 2  ? help")
	s = shownScreen(80, 24)
	contains(t, s.text(), "no problems", "no queue holds anything", "0-0 of 0")
	s = &screen{width: 80, height: 24, now: topNow, board: newQueueBoard(boardColumns[0])}
	contains(t, s.text(), "connecting", "not known yet")
}

// Whatever the size and the page, nothing is drawn beyond it.
func TestTopFitsAnySize(t *testing.T) {
	queues := []wire.LiveQueue{liveQueue("日本語のキュー名前です", 1, 3), liveQueue(strings.Repeat("long", 50), 7, 9e9), liveQueue("e\u0301\u0301\u0301", 0, 1)}
	queues[1].OldestReady, queues[1].Scheduled, queues[1].Paused = wire.Time{Time: topNow.Add(-1e6 * time.Hour)}, 1<<62, true
	for width := range 130 {
		for _, height := range []int{0, 1, 2, 3, 4, 5, 8, 24, 60} {
			for _, key := range []string{"", "enter", "?", "!", "/"} {
				s := shownScreen(width, height, queues...).keys(key)
				s.detail.trend, s.detail.at = new(wire.Trend), topNow
				s.detail.trend.Steps.Acked, s.detail.trend.Steps.Lateness.P99 = make([]uint64, 60), make([]*float64, 60)
				s.detail.buckets = make([]tarry.Bucket, 60)
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
	contains(t, shownScreen(40, 12, queues...).text(), "READY", "P99", "live")
}

// What a terminal would obey does not reach it, wherever it stands.
func TestTopObeysNobody(t *testing.T) {
	evil := "a\x1b]0;owned\x07\x1b[2Jb\u202ec\u009b31m\r\n"
	q := liveQueue(evil, 3, 1)
	q.OldestReady = wire.Time{Time: topNow.Add(-time.Hour)}
	s := shownScreen(300, 40, q)
	s.where, s.version, s.engine = evil, evil, evil
	s.looked = []problem{{"server", "", evil, evil}}
	s.arrange()
	s.board.filter = evil
	for _, key := range []string{"", "/", "esc", "enter", "!", "?"} {
		s.keys(key)
		s.detail = detail{queue: evil, at: topNow, failed: fmt.Errorf("%s", evil), forecast: fmt.Errorf("%s", evil)}
		s.link.why, s.link.up = evil, key == "enter"
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
	see("q0000", s.rows())
	s.keys("pgdown", "down")
	if s.selected != fmt.Sprintf("q%04d", s.rows()+1) {
		t.Errorf("the cursor is on %q", s.selected)
	}
	see("q0002", s.rows())
	s.keys("end")
	contains(t, s.text(), "of 10000  ?", "q9999")
	s.keys("home", "r") // most ready first, then by name
	see("q0006", s.rows())
	s.keys("r")
	see("q0000", s.rows())
	s.keys("9")
	if late := s.board.shown[0].Trend.Lateness.P99; *late != 9999 || s.board.shown[9999].Trend.Lateness.P99 != nil {
		t.Errorf("the latest is %v ms late", *late)
	}
	s.keys("/", "Q", "0", "0", "1", "7", "backspace", "enter", "n")
	see("q0010", 10)
	s.keys("down", "down")
	s.told(news{queues: []wire.LiveQueue{liveQueue("q001", 1, 0)}, link: link{up: true}})
	if s.selected != "q0012" || s.board.shown[s.cursor].Queue != "q0012" {
		t.Errorf("the cursor has moved to %q", s.board.shown[s.cursor].Queue)
	}
	s.keys("/", "x", "esc") // as it was before
	see("q001 ", 11)
	s.keys("/")
	s.paste(strings.Repeat("x", maxFilter+1))
	s.paste(" 99\n")
	contains(t, s.text(), "/Q00199 ", "no queue has Q00199 in its name")
	s.keys("enter", "esc", "R")
	see("q9999", s.rows())
	s.keys("R", ">", "<", "<")
	if s.board.sort.name != "oldest" {
		t.Errorf("sorted by %s", s.board.sort.name)
	}
}

func TestTopDrawsAQueue(t *testing.T) {
	s := shownScreen(80, 24, liveQueue("mail", 2, 7))
	s.keys("enter")
	contains(t, s.text(), "\nmail\n", "due in the next hour, by the minute: not known yet")
	if s.open() != "mail" {
		t.Errorf("%q is open", s.open())
	}
	buckets := make([]tarry.Bucket, 60)
	for i := range buckets {
		buckets[i] = tarry.Bucket{From: topNow.Add(time.Duration(i) * time.Minute), Count: int64(i % 3)}
	}
	buckets[7].Count = 500
	trend := &wire.Trend{Span: wire.Duration(10 * time.Minute)}
	trend.Steps.Acked, trend.Steps.Lateness.P99 = make([]uint64, 60), make([]*float64, 60)
	trend.Steps.Acked[59], trend.Steps.Lateness.P99[30] = 10, ms(80)
	trend.Total.Acked, trend.Total.Lateness = 10, wire.Times{Count: 9, P50: ms(3), P99: ms(70), Max: ms(80)}
	s.detail = detail{queue: "mail", at: topNow, buckets: buckets, trend: trend}
	text := s.text()
	contains(t, text, "3 scheduled, 2 ready, 0 leased, 0 dead, 0 keys remembered", "next due in 1m30s, oldest ready 5.0s ago, 2.00/s in, 1.25/s out",
		"by the minute: 559, most 500 in 7m00s", "now            +15m", "+45m", "how late: 99 of 100 in the last 10m: p50 3ms, p99 70ms, worst 80ms", "handled: 10; dead 0, retried 0", "Esc back")
	lines := strings.Split(text, "\n")
	tall := 0
	for _, l := range lines {
		if l == "       █" {
			tall++
		}
	}
	if tall < 4 {
		t.Errorf("the minute with 500 has %d lines:\n%s", tall, text)
	}
	contains(t, text, "\n ▁▁ ▁▁ █▁")
	s.ascii = true
	ascii := s.text()
	contains(t, ascii, "\n .. .. #.")
	if strings.ContainsFunc(ascii, func(r rune) bool { return r > 126 }) {
		t.Errorf("not ASCII:\n%s", ascii)
	}
	s.keys("h")
	contains(t, s.text(), "the next 2 days, by the hour: not known yet")
	s.keys("tab", "?")
	contains(t, s.text(), "99 of 100 were no later")
	s.keys("?", "esc")
	if s.page != pageQueues || zooms[s.zoom].key != "d" || s.open() != "" {
		t.Errorf("page %d, zoom %d", s.page, s.zoom)
	}
	s.keys("enter")
	s.detail = detail{queue: "mail", zoom: s.zoom, at: topNow, forecast: tarry.ErrUnsupported, failed: tarry.ErrUnavailable}
	contains(t, s.text(), "by the day: not supported by this engine", "how late messages were: ")
}

// A connection that is gone is told of, with what is shown.
func TestTopSaysThatItIsOld(t *testing.T) {
	s := shownScreen(100, 24, liveQueue("mail", 0, 0))
	s.told(news{link: link{why: "the server stops", again: topNow.Add(3 * time.Second)}})
	contains(t, s.text(), "reconnecting in 3.0s  12:00", "what is shown is old: the server stops", "\nmail ")
	s.told(news{link: link{why: "the server stops"}})
	contains(t, s.text(), "reconnecting  12:00")
	s.told(news{link: link{up: true, stale: true}})
	contains(t, s.text(), "the store does not answer  12:00", "what is shown is old")
	s.told(news{whole: true, link: link{up: true}})
	contains(t, s.text(), "live  12:00", "no queue holds anything")
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
	s.looked = []problem{{"not_ready", "", "no space left", "free some"}}
	s.arrange()
	contains(t, s.text(), "! no space left  free some\n! q00: 1 message is due, the first since 1h", "! and 48 problems; ! shows all")
	s.keys("!")
	contains(t, s.text(), "51 problems\n! no space left\n  free some\n", "! q00: ")
	s.keys("down", "down", "down", "down")
	contains(t, s.text(), "! q03: 1 message is due, the first since 1h, and the queue is paused\n  tarry resume q03 ends the pause\n! q04: ", "with 2 leases held", "! q05: of 9 messages handed out within 5m one in a hundred came later than 31s")
	s.keys("end", "!")
	if s.page != pageQueues {
		t.Error("! does not go back")
	}
}

func TestTopForgetsWhatIsGone(t *testing.T) {
	s := shownScreen(80, 24, liveQueue("mail", 0, 0), liveQueue("news", 0, 0))
	s.told(news{queues: []wire.LiveQueue{{Queue: "mail", Gone: true}, {Queue: "unknown", Gone: true}}, link: link{up: true}})
	contains(t, s.text(), "2 queues", "\nmail ")
	s.now = s.now.Add(stays)
	s.arrange()
	lacks(t, s.text(), "mail", "unknown")
	b := newQueueBoard(boardColumns[0])
	many := make([]wire.LiveQueue, maxBoard+1)
	for i := range many {
		many[i].Queue = fmt.Sprint(i)
	}
	b.take(many, true, false, topNow)
	if len(b.rows) != maxBoard || !b.more {
		t.Errorf("%d queues are kept, more: %v", len(b.rows), b.more)
	}
	b.take(nil, true, false, topNow)
	if len(b.rows) != 0 || b.more {
		t.Errorf("%d queues are left, more: %v", len(b.rows), b.more)
	}
}

func TestTopWritesFewCharacters(t *testing.T) {
	for _, n := range []int64{0, 99_999, 100_000, 9_999_999, 10_000_000, 9_999_999_999, 10_000_000_000, 999_999_000_000_000} {
		if s := few(n); len(s) > 7 {
			t.Errorf("%d: %s", n, s)
		}
		if s := fewPerSecond(float64(n) + 0.999); n < 1e13 && len(s) > 6 {
			t.Errorf("%d: %s", n, s)
		}
	}
	for d := time.Microsecond; d < 9000*24*time.Hour; d = d*5/4 + 1 {
		if s := short(d); len(s) > 6 {
			t.Errorf("%s: %s", d, s)
		}
	}
}
