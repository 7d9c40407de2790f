package main

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

// zoom is how finely, and how far, a forecast is shown.
type zoom struct {
	key, name  string
	step, span time.Duration
}

var zooms = []zoom{
	{"m", "the next hour, by the minute", time.Minute, time.Hour},
	{"h", "the next 2 days, by the hour", time.Hour, 48 * time.Hour},
	{"d", "the next 60 days, by the day", 24 * time.Hour, 60 * 24 * time.Hour},
}

const (
	// trendSpan and trendStep are how far back and how finely is shown how late messages were.
	trendSpan = 10 * time.Minute
	trendStep = 10 * time.Second

	// maxFilter is how long a filter may be, in bytes: as a queue's name.
	maxFilter = tarry.MaxQueueBytes
)

// detail is what is shown of one queue beyond its row.
type detail struct {
	queue    string
	zoom     int // of zooms
	at       time.Time
	changes  uint64 // of its row when it was asked for
	buckets  []tarry.Bucket
	forecast error
	trend    *wire.Trend // nil: nothing keeps it
	failed   error       // there is no trend for this reason
}

// page is what a screen shows.
type page int

const (
	pageQueues page = iota
	pageQueue
	pageProblems
	pageHelp
)

// screen is what tarry top shows and what keys do to it. It asks nobody, and knows only
// what it was told: draw depends on nothing else.
type screen struct {
	where, version, engine string
	late                   time.Duration
	ascii                  bool // the terminal may not know other characters

	width, height int
	now           time.Time // by the clock of what is watched
	link          link
	begun         bool // something was told
	board         *queueBoard
	looked        []problem // what the rows do not show
	problems      []problem

	page     page
	behind   page   // what Esc returns to
	selected string // a queue; "": the first, whichever it is
	cursor   int    // where that is among those shown
	first    int    // of those shown, on the screen
	offset   int    // of the problems
	typing   bool   // the filter
	was      string // the filter before
	zoom     int
	detail   detail
}

// wish is what a key asks of whoever runs the screen.
type wish int

const (
	wishNothing wish = iota
	wishQuit
	wishSuspend
	wishRedraw
)

// told takes up news.
func (s *screen) told(n news) {
	s.link = n.link
	if n.link.up && (n.whole || len(n.queues) > 0) {
		s.begun = true
	}
	s.board.take(n.queues, n.whole, n.more, s.now)
	s.arrange()
}

// arrange brings what is shown in line with what is known.
func (s *screen) arrange() {
	s.board.arrange(s.now)
	f := finder{Problems: append(slices.Clone(s.looked), s.board.problems(s.late, s.now)...)}
	f.order()
	s.problems = f.Problems
	s.cursor = 0
	if s.selected != "" {
		at := slices.IndexFunc(s.board.shown, func(r *boardRow) bool { return r.Queue == s.selected })
		if at < 0 {
			s.selected = ""
		}
		s.cursor = max(0, at)
	}
	s.scroll()
}

// scroll keeps the cursor on the screen.
func (s *screen) scroll() {
	rows := s.rows()
	s.first = min(s.first, s.cursor)
	s.first = max(s.first, s.cursor-rows+1, 0)
	s.first = min(s.first, max(0, len(s.board.shown)-rows))
	s.offset = max(0, min(s.offset, len(s.problems)-1))
}

// move puts the cursor on a row.
func (s *screen) move(to int) {
	n := len(s.board.shown)
	if n == 0 {
		return
	}
	s.cursor = max(0, min(to, n-1))
	s.selected = s.board.shown[s.cursor].Queue
	if s.cursor == 0 {
		s.selected = "" // it stays at the top, whoever comes there
	}
	s.scroll()
}

// open is the queue that is open; "": none.
func (s *screen) open() string {
	if s.page == pageQueue || s.page == pageHelp && s.behind == pageQueue {
		return s.detail.queue
	}
	return ""
}

// press takes a key, by its name; text is what it writes, "" for nothing.
func (s *screen) press(key, text string) wish {
	switch {
	case key == "ctrl+c":
		return wishQuit
	case key == "ctrl+z":
		return wishSuspend
	case key == "ctrl+l":
		return wishRedraw
	case s.typing:
		s.write(key, text)
		return wishNothing
	case key == "q":
		return wishQuit
	case key == "esc" || key == "backspace" || key == "left" && s.page != pageQueues:
		s.back()
		return wishNothing
	case key == "?" || key == "f1":
		s.show(pageHelp)
		return wishNothing
	case key == "!":
		s.show(pageProblems)
		return wishNothing
	}
	switch s.page {
	case pageQueues:
		s.pressList(key)
	case pageProblems:
		s.offset += steps(key, s.height/2)
		s.scroll()
	case pageQueue:
		for i, z := range zooms {
			if key == z.key {
				s.zoom = i
			}
		}
		if key == "z" || key == "tab" {
			s.zoom = (s.zoom + 1) % len(zooms)
		}
	}
	return wishNothing
}

// show goes to a page, or back when it is there.
func (s *screen) show(p page) {
	switch {
	case s.page == p:
		s.back()
	case s.page == pageHelp || s.page == pageProblems:
		s.page = p
	default:
		s.behind, s.page, s.offset = s.page, p, 0
	}
}

// back leaves what is shown; of the list it takes the filter away.
func (s *screen) back() {
	switch s.page {
	case pageQueues:
		s.board.filter = ""
		s.arrange()
	case pageQueue:
		s.page = pageQueues
	default:
		s.page = s.behind
	}
}

// steps is how far a key moves a cursor.
func steps(key string, page int) int {
	switch key {
	case "up", "k", "ctrl+p":
		return -1
	case "down", "j", "ctrl+n":
		return 1
	case "pgup", "ctrl+b", "ctrl+u":
		return -max(1, page)
	case "pgdown", "ctrl+f", "ctrl+d", "space":
		return max(1, page)
	case "home", "g":
		return -maxBoard
	case "end", "G", "shift+g":
		return maxBoard
	}
	return 0
}

func (s *screen) pressList(key string) {
	if n := steps(key, s.rows()); n != 0 {
		s.move(s.cursor + n)
		return
	}
	switch key {
	case "/":
		s.typing, s.was = true, s.board.filter
	case "enter", "right":
		if len(s.board.shown) > 0 {
			s.page, s.detail = pageQueue, detail{queue: s.board.shown[s.cursor].Queue}
		}
	case "R", "shift+r":
		s.board.reverse = !s.board.reverse
		s.arrange()
	case "<", ">":
		at := slices.Index(boardColumns, s.board.sort) + len(boardColumns) + 1
		if key == "<" {
			at -= 2
		}
		s.board.sort, s.board.reverse = boardColumns[at%len(boardColumns)], false
		s.arrange()
	}
	for _, c := range boardColumns {
		if key == c.key {
			s.board.reverse = s.board.sort == c && !s.board.reverse
			s.board.sort = c
			s.arrange()
		}
	}
}

// write takes a key of the filter.
func (s *screen) write(key, text string) {
	f := &s.board.filter
	switch key {
	case "enter":
		s.typing = false
		return
	case "esc":
		s.typing, *f = false, s.was
	case "backspace", "ctrl+h":
		_, n := utf8.DecodeLastRuneInString(*f)
		*f = (*f)[:len(*f)-n]
	case "ctrl+u":
		*f = ""
	default:
		if text != "" && len(*f)+len(text) <= maxFilter {
			*f += text
		}
	}
	s.arrange()
}

// paste takes what is pasted into the filter; elsewhere it is no keys.
func (s *screen) paste(text string) {
	if s.typing {
		s.write("", strings.TrimSpace(text))
	}
}
