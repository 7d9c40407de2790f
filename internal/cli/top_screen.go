package cli

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/duration"
)

const (
	forecastEvery = 5 * time.Second  // for the forecast of the open queue
	forecastLimit = 10 * time.Second // for one forecast
	frames        = 20               // drawn a second at most
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

// The messages of a screen, besides keys.
type (
	// looked is the result of a look at the queues.
	looked struct {
		*overview
		err  error
		rest time.Duration // until the next look
	}
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
	ctx      context.Context
	c        *tarry.Client
	interval time.Duration
	look     func() (*overview, error)

	*overview       // the last look that was answered
	err       error // of the last look
	order
	shown    []*queueRow // the table
	asking   bool        // a forecast was asked for
	forecast forecast

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

// topOnScreen shows the screen until the user quits or ctx ends.
func (p *Program) topOnScreen(ctx context.Context, c *tarry.Client, f *topFlags, w watched, in, out *os.File) error {
	asked, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &topScreen{watched: w, ctx: asked, c: c, interval: f.interval, order: f.order,
		look: func() (*overview, error) { return p.topLook(asked, c, f.late) }}
	first, err := s.look()
	if err != nil {
		return err
	}
	s.take(first)
	// A signal ends ctx, and so quits as q does.
	screen := tea.NewProgram(s, tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(p.Env), tea.WithoutSignalHandler(), tea.WithFPS(frames))
	defer context.AfterFunc(ctx, screen.Quit)()
	if _, err := screen.Run(); err != nil {
		return failedf(err, "tarry top --n 1 prints a table instead", "the terminal: %v", err)
	}
	return nil
}

// Init begins to look.
func (s *topScreen) Init() tea.Cmd { return s.lookAfter(s.interval) }

// lookAfter looks at the queues after a rest. Looks take at most a quarter of the time.
func (s *topScreen) lookAfter(rest time.Duration) tea.Cmd {
	return func() tea.Msg {
		duration.Sleep(s.ctx, rest)
		began := time.Now()
		o, err := s.look()
		return looked{o, err, max(s.interval, 3*time.Since(began))}
	}
}

// View returns the screen.
func (s *topScreen) View() tea.View {
	v := tea.NewView(s.draw())
	v.AltScreen = true
	return v
}

// Update handles an event, and asks for missing data.
func (s *topScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var do tea.Cmd
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		do = s.press(m.String(), m.Text)
	case tea.PasteMsg:
		if s.typing {
			s.write("", strings.TrimSpace(m.Content))
		}
	case looked:
		if s.err = m.err; m.err == nil {
			s.take(m.overview)
		}
		do = s.lookAfter(m.rest)
	case forecast:
		s.asking, s.forecast = false, m
	}
	return s, tea.Batch(do, s.ask())
}

// take shows what a look has found.
func (s *topScreen) take(o *overview) {
	s.overview = o
	s.arrange()
}

// arrange updates the table to the order and the filter.
func (s *topScreen) arrange() {
	s.shown = s.order.of(s.rows, s.now)
	s.cursor = max(0, slices.IndexFunc(s.shown, func(r *queueRow) bool { return r.Queue == s.selected }))
}

// ask asks for the forecast of the open queue, when it is missing or old.
func (s *topScreen) ask() tea.Cmd {
	if s.open == "" || s.asking || s.known() && s.now.Sub(s.forecast.asked) < forecastEvery {
		return nil
	}
	s.asking = true
	next := forecast{queue: s.open, zoom: s.zoom, asked: s.now}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(s.ctx, forecastLimit)
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
	s.move(map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -s.room, "pgdown": s.room, "home": -topMost, "end": topMost}[key])
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
		s.filter = ""
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
	s.cursor = max(0, min(s.cursor+by, len(s.shown)-1))
	if s.selected = ""; s.cursor > 0 {
		s.selected = s.shown[s.cursor].Queue
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
	switch key {
	case "/":
		s.typing, s.was = true, s.filter
	case "enter":
		if len(s.shown) > 0 {
			s.open, s.first = s.shown[s.cursor].Queue, 0
		}
	case "R":
		s.reverse = !s.reverse
		s.arrange()
	}
	by, n := slices.Index(boardColumns, s.by), len(boardColumns)
	for i, c := range boardColumns {
		if again := key == c.key; again || key == ">" && i == (by+1)%n || key == "<" && i == (by+n-1)%n {
			s.by, s.reverse = c, again && i == by && !s.reverse
			s.arrange()
			return
		}
	}
}

// write handles a key while a filter is typed.
func (s *topScreen) write(key, text string) {
	f := &s.filter
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
