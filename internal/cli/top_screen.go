package cli

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/httpengine"
)

const (
	askEvery  = 5 * time.Second  // for the forecast of the open queue, and for what no row shows
	askLimit  = 10 * time.Second // for one forecast
	lookLimit = time.Minute      // for what no row shows
	frames    = 20               // drawn a second at most
)

// zooms are the steps and spans of forecasts.
var zooms = []struct {
	key, name, label string
	step, span       time.Duration
}{
	{"m", "the next hour, by the minute", "15:04", time.Minute, time.Hour},
	{"h", "the next 2 days, by the hour", "Jan _2 15:04", time.Hour, 48 * time.Hour},
	{"d", "the next 60 days, by the day", "Jan _2 15:04", 24 * time.Hour, 60 * 24 * time.Hour},
}

// The messages of a screen, besides keys and news.
type (
	tick     struct{}
	beyond   []problem // problems that no row shows
	forecast struct {
		queue  string
		zoom   int // index in zooms
		asked  time.Time
		answer tarry.Forecast
		err    error
	}
)

// topScreen is a tea.Model: what is known of the queues, and what is shown. The drawing
// depends on nothing else.
type topScreen struct {
	watched
	ctx   context.Context
	c     *tarry.Client
	late  time.Duration
	clock func() time.Time
	err   error // why the program ended

	now        time.Time // by the clock of the server or store
	skew       time.Duration
	state, why string // of the connection
	begun      bool   // the queues are known
	board      *queueBoard
	beyond     beyond
	problems   []problem
	asking     bool // a forecast was asked for
	forecast   forecast

	width, height int
	over          string // key of the page that covers the rest: "?", "!" or ""
	open          string // the open queue; "": none
	zoom          int    // index in zooms
	selected      string // the selected queue; "": whichever is first
	cursor        int    // index of the selected queue
	first         int    // the first line of the page on the screen
	room          int    // how many lines of the page fit
	typing        bool   // a filter is being typed
	was           string // the filter before that
}

// topScreen returns an empty screen, with the order and filter of the flags.
func (p *Program) topScreen(ctx context.Context, c *tarry.Client, f *topFlags, w watched) *topScreen {
	b := &queueBoard{rows: make(map[string]*boardRow), sort: f.by, reverse: f.reverse, filter: f.filter}
	return &topScreen{watched: w, ctx: ctx, c: c, late: f.late, clock: p.Now, state: connecting, board: b}
}

// topOnScreen shows the screen until the user quits or ctx ends.
func (p *Program) topOnScreen(ctx context.Context, c *tarry.Client, f *topFlags, w watched, in, out *os.File) error {
	asked, cancel := context.WithCancel(ctx)
	s := p.topScreen(asked, c, f, w)
	// A signal ends ctx, and so quits as q does.
	screen := tea.NewProgram(s, tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(p.Env), tea.WithoutSignalHandler(), tea.WithFPS(frames))
	defer context.AfterFunc(ctx, screen.Quit)()
	var tasks sync.WaitGroup
	tasks.Go(func() {
		tell := func(n news) { screen.Send(n) }
		if e, ok := c.Engine().(*httpengine.Engine); ok {
			(&follower{e: e, now: p.Now, silence: liveSilence}).run(asked, tell)
			return
		}
		poll(asked, c, f.interval, tell)
	})
	tasks.Go(func() {
		repeat(asked, askEvery, func() {
			ctx, cancel := context.WithTimeout(asked, lookLimit)
			defer cancel()
			f := finder{now: p.Now()}
			f.beyond(ctx, c)
			screen.Send(beyond(f.Problems))
		})
	})
	_, err := screen.Run()
	cancel()
	tasks.Wait()
	if s.err == nil && err != nil {
		return failedf(err, "tarry top --n 1 prints a table instead", "the terminal: %v", err)
	}
	return s.err
}

// tick waits for a second, or until the end.
func (s *topScreen) tick() tea.Msg {
	pause(s.ctx, time.Second)
	return tick{}
}

// Init starts the ticks.
func (s *topScreen) Init() tea.Cmd { return s.tick }

// View returns the screen.
func (s *topScreen) View() tea.View {
	v := tea.NewView(s.draw())
	v.AltScreen = true
	return v
}

// Update handles an event, and asks for missing data.
func (s *topScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var do tea.Cmd
	if n, ok := msg.(news); ok {
		s.skew = n.skew
	}
	s.now = s.clock().Add(s.skew)
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		do = s.press(m.String(), m.Text)
	case tea.PasteMsg:
		if s.typing {
			s.write("", strings.TrimSpace(m.Content))
		}
	case news:
		if m.err != nil {
			s.err = m.err
			return s, tea.Quit
		}
		s.state, s.why, s.begun = m.state, m.why, s.begun || m.whole
		s.board.take(&m, s.now)
		s.arrange()
	case tick:
		s.arrange()
		do = s.tick
	case beyond:
		s.beyond = m
		s.arrange()
	case forecast:
		s.asking, s.forecast = false, m
	}
	return s, tea.Batch(do, s.ask())
}

// arrange updates what is shown to what is known.
func (s *topScreen) arrange() {
	s.board.arrange(s.now)
	s.problems = s.board.problems(&finder{late: s.late, now: s.now, Problems: slices.Clone(s.beyond)})
	s.cursor = max(0, slices.IndexFunc(s.board.shown, func(r *boardRow) bool { return r.Queue == s.selected }))
}

// ask asks for the forecast of the open queue, when it is missing or old.
func (s *topScreen) ask() tea.Cmd {
	if s.open == "" || s.asking || s.state != live || s.known() && s.now.Sub(s.forecast.asked) < askEvery {
		return nil
	}
	s.asking = true
	next := forecast{queue: s.open, zoom: s.zoom, asked: s.now}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(s.ctx, askLimit)
		defer cancel()
		next.answer, next.err = s.c.Forecast(ctx, next.queue, zooms[next.zoom].step, zooms[next.zoom].span)
		return next
	}
}

// known reports whether the forecast is for the open queue and zoom.
func (s *topScreen) known() bool { return s.forecast.queue == s.open && s.forecast.zoom == s.zoom }

// press handles a key; text is what it types, "" for nothing.
func (s *topScreen) press(key, text string) tea.Cmd {
	switch {
	case key == "ctrl+c", key == "q" && !s.typing:
		return tea.Quit
	case key == "ctrl+z":
		return tea.Suspend
	case s.typing:
		s.write(key, text)
		return nil
	}
	switch key {
	case "?", "!":
		if s.first = 0; s.over == key {
			key = ""
		}
		s.over = key
	case "esc":
		s.back()
	}
	s.move(map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -s.room, "pgdown": s.room, "home": -maxBoard, "end": maxBoard}[key])
	switch {
	case s.list():
		s.pressList(key)
	case s.over == "":
		s.pressQueue(key)
	}
	return nil
}

// list reports whether the table of queues is shown.
func (s *topScreen) list() bool { return s.over == "" && s.open == "" }

// back leaves the page; in the table it clears the filter.
func (s *topScreen) back() {
	s.first = 0
	switch {
	case s.over != "":
		s.over = ""
	case s.open != "":
		s.open = ""
	default:
		s.board.filter = ""
		s.arrange()
	}
}

// move moves the cursor in the table, or scrolls another page.
func (s *topScreen) move(by int) {
	switch {
	case by == 0:
		return
	case !s.list():
		s.first += by // draw keeps this within the page
		return
	}
	s.cursor = max(0, min(s.cursor+by, len(s.board.shown)-1))
	if s.selected = ""; s.cursor > 0 {
		s.selected = s.board.shown[s.cursor].Queue
	}
}

func (s *topScreen) pressQueue(key string) {
	for i, z := range zooms {
		if key == z.key || key == "tab" && i == (s.zoom+1)%len(zooms) {
			s.zoom, s.first = i, 0
			return
		}
	}
}

func (s *topScreen) pressList(key string) {
	b := s.board
	switch key {
	case "/":
		s.typing, s.was = true, b.filter
	case "enter":
		if len(b.shown) > 0 {
			s.open, s.first = b.shown[s.cursor].Queue, 0
		}
	case "R":
		b.reverse = !b.reverse
		s.arrange()
	}
	by, n := slices.Index(boardColumns, b.sort), len(boardColumns)
	for i, c := range boardColumns {
		if again := key == c.key; again || key == ">" && i == (by+1)%n || key == "<" && i == (by+n-1)%n {
			b.sort, b.reverse = c, again && i == by && !b.reverse
			s.arrange()
			return
		}
	}
}

// write handles a key while a filter is typed.
func (s *topScreen) write(key, text string) {
	f := &s.board.filter
	switch key {
	case "enter":
		s.typing = false
	case "esc":
		s.typing, *f = false, s.was
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(*f)
		*f = (*f)[:len(*f)-n]
	default:
		if len(*f)+len(text) <= maxFilter {
			*f += text
		}
	}
	s.arrange()
}
