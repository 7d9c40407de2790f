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
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server"
)

var topNow = time.Date(2030, 3, 1, 12, 0, 0, 0, time.UTC)

func ms(v float64) *float64 { return &v }

// queueAt is a queue as a look finds it.
type queueAt struct {
	tarry.QueueInfo
	trend *wire.QueueTrend
}

// liveQueue is a queue that 120 messages were pushed to in the last minute, and 75 handled.
func liveQueue(name string, ready int64, p99 float64) queueAt {
	q := queueAt{tarry.QueueInfo{Queue: name, Scheduled: 3, Ready: ready, NextDue: topNow.Add(90 * time.Second)}, new(wire.QueueTrend)}
	q.trend.Spark = wire.Spark{Pushed: []uint64{120, 9}, Acked: []uint64{75, 9}}
	if ready > 0 {
		q.OldestReady = topNow.Add(-5 * time.Second)
	}
	if p99 > 0 {
		q.trend.Lateness = wire.Times{Count: 9, P50: ms(p99 / 2), P99: ms(p99), Max: ms(2 * p99)}
	}
	return q
}

// lookedAt is a look that found queues, and problems beside theirs.
func lookedAt(now time.Time, queues []queueAt, problems ...problem) looked {
	o := &overview{late: server.LateAfter, now: now, problems: problems, trends: len(queues) > 0 && queues[0].trend != nil}
	for _, q := range queues {
		o.add(q.QueueInfo, q.trend, topStep)
	}
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	if err := o.find(context.Background(), c); err != nil {
		panic(err)
	}
	return looked{overview: o}
}

// shownScreen shows queues.
func shownScreen(width, height int, queues ...queueAt) *topScreen {
	s := &topScreen{watched: watched{Server: "http://127.0.0.1:8277", Version: "v1.2.3", Engine: "http+mem"}, ctx: context.Background(), order: order{by: boardColumns[0]}}
	s.width, s.height = width, height
	s.Update(lookedAt(topNow, queues))
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
	late.OldestReady = topNow.Add(-time.Minute)
	s := shownScreen(100, 24, liveQueue("order.unpaid", 0, 0), late)
	contains(t, s.text(), "tarry top  live  12:00:00Z  http://127.0.0.1:8277  v1.2.3  http+mem\n",
		"2 queues: 6 scheduled, 4 ready, 0 leased, 0 dead; 4/s in, 2.50/s out\n",
		"! mail: 4 messages are due, the oldest for 1m, and none is leased  start a worker",
		"QUEUEv                          READY  SCHED LEASED   DEAD    P50    P99   IN/S  OUT/S   NEXT OLDEST",
		"mail                                4      3      0      0  6.2ms   13ms      2   1.25  1m30s     1m",
		"order.unpaid                        0      3      0      0      -      -      2   1.25  1m30s      -",
		"1-2 of 2  ? help")
	s = shownScreen(80, 24)
	contains(t, s.text(), "no problems", "no queues", "0-0 of 0")
	contains(t, shownScreen(50, 24, late).text(), "QUEUEv           READY  SCHED LEASED   DEAD    P50\n")
}

// Whatever the size and the page, nothing is drawn beyond it.
func TestTopFitsAnySize(t *testing.T) {
	queues := []queueAt{liveQueue("日本語のキュー名前です", 1, 3), liveQueue(strings.Repeat("long", 50), 7, 9e9), liveQueue("e\u0301\u0301\u0301", 0, 1)}
	queues[1].OldestReady, queues[1].Scheduled, queues[1].Paused = topNow.Add(-1e6*time.Hour), 1<<62, true
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
	q.OldestReady = topNow.Add(-time.Hour)
	s := shownScreen(300, 40, q)
	s.Server, s.Version, s.Engine = evil, evil, evil
	s.Update(lookedAt(topNow, []queueAt{q}, problem{Problem: "server", Message: evil, Hint: evil}))
	s.filter = evil
	for _, key := range []string{"", "/", "esc", "enter", "!", "?"} {
		s.keys(key)
		s.forecast = forecast{queue: evil, err: errors.New(evil)}
		s.err = errors.New(evil)
		text := s.text() // without the styles, which are ours
		if strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), obeyed) || strings.Contains(s.draw(), "\x1b]") || strings.Contains(s.draw(), "\x1b[2J") {
			t.Errorf("after %q: %q", key, s.draw())
		}
	}
}

func TestTopSortsFiltersAndMoves(t *testing.T) {
	var queues []queueAt
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
	if late := s.shown[0].late.P99; *late != 9999 || s.shown[9999].late.P99 != nil {
		t.Errorf("the latest is %v ms late", *late)
	}
	s.keys("/", "Q", "0", "0", "1", "7", "backspace", "enter", "n")
	see("q0010", 10)
	s.keys("down", "down")
	s.Update(lookedAt(topNow, append(queues, liveQueue("q001", 1, 0))))
	if s.selected != "q0012" || s.shown[s.cursor].Queue != "q0012" {
		t.Errorf("the cursor has moved to %q", s.shown[s.cursor].Queue)
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
	if s.by.name != "oldest" {
		t.Errorf("sorted by %s", s.by.name)
	}
}

func TestTopDrawsAQueue(t *testing.T) {
	q := liveQueue("mail", 2, 7)
	q.trend.Acked, q.trend.Died = 10, 1
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
	q.trend = nil
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
	s.now = topNow.Add(forecastEvery)
	asks(true, "later")
}

// A server that no longer answers is told of, with what is shown.
func TestTopSaysThatItIsOld(t *testing.T) {
	s := shownScreen(100, 24, liveQueue("mail", 0, 0))
	if _, next := s.Update(looked{overview: new(overview), err: errors.New("the server stops")}); next == nil {
		t.Error("it does not ask again")
	}
	contains(t, s.text(), "no answer  12:00", "what is shown is old: the server stops", "\nmail ")
	contains(t, s.keys("enter").text(), "what is shown is old: the server stops")
	s.Update(lookedAt(topNow.Add(time.Hour), nil))
	contains(t, s.keys("esc").text(), "live  13:00", "no queues")
	lacks(t, s.text(), "old")
}

func TestTopProblems(t *testing.T) {
	var queues []queueAt
	for i := range 50 {
		q := liveQueue(fmt.Sprintf("q%02d", i), 1, 0)
		q.OldestReady = topNow.Add(-time.Hour)
		queues = append(queues, q)
	}
	queues[3].Paused, queues[4].Leased = true, 2
	s := shownScreen(120, 24, queues...)
	s.Update(lookedAt(topNow, queues, problem{Problem: "not_ready", Message: "no space left", Hint: "free some"}))
	contains(t, s.text(), "! no space left  free some\n! q00: 1 message is due, the oldest for 1h", "! and 48 problems; ! shows all")
	s.keys("!")
	contains(t, s.text(), "51 problems\n! no space left\n  free some\n", "! q00: ")
	s.keys("end")
	contains(t, s.text(), "! q04: 1 message is due, the oldest for 1h, with 2 leases held\n", "! q03: 1 message is due, the oldest for 1h, and the queue is paused\n  tarry resume q03 ends the pause\n")
	s.keys("!")
	contains(t, s.text(), "of 50  ?")
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
