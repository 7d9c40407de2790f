package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/wire"
)

const (
	// detailEvery is how often is asked for what is shown of an open queue; when its messages
	// have changed, each second.
	detailEvery = 5 * time.Second
	// detailLimit bounds what is asked for.
	detailLimit = 10 * time.Second
	// frames is how often a second the screen is drawn at most.
	frames = 20
)

// terminal runs a screen: it asks for what the screen wants to show, and hands it keys and
// news.
type terminal struct {
	*screen
	c     *tarry.Client
	ctx   context.Context
	clock func() time.Time
	skew  time.Duration

	deaths   *deathWatch
	looking  bool      // for deaths
	lookedAt time.Time // when that was done
	asking   bool      // for the detail
	err      error     // why it ended
}

// The messages of a terminal beside keys and news.
type (
	tick   struct{}
	looked []problem
)

// topScreen shows the screen until the user quits or ctx ends.
func (p *Program) topScreen(ctx context.Context, c *tarry.Client, f *topFlags, in, out *os.File) error {
	where, version, engine, err := f.about(p, c)
	if err != nil {
		return err
	}
	asked, cancel := context.WithCancel(ctx)
	t := &terminal{
		screen: &screen{where: where, version: version, engine: engine, late: f.late, ascii: p.ascii(), board: f.board(), now: p.Now()},
		c:      c, ctx: asked, clock: p.Now, deaths: &deathWatch{c: c, late: f.late},
	}
	var from source = &poller{c: c, every: f.interval, now: p.Now}
	if e, ok := c.Engine().(*httpengine.Engine); ok {
		from = newFollower(e, p.Now)
	}
	// A signal quits as q does: main has taken it for the end of ctx.
	screen := tea.NewProgram(t, tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(p.Env), tea.WithoutSignalHandler(), tea.WithFPS(frames))
	defer context.AfterFunc(ctx, screen.Quit)()
	var tasks sync.WaitGroup
	tasks.Go(func() { from.run(asked, func(n news) { screen.Send(n) }) })
	_, err = screen.Run()
	cancel()
	tasks.Wait()
	if t.err == nil && err != nil {
		t.err = &failedError{line: "the terminal: " + err.Error(), hint: "tarry top --n 1 prints a table instead", err: err}
	}
	return t.err
}

// tick waits for a second, or for the end.
func (t *terminal) tick() tea.Msg {
	pause(t.ctx, time.Second)
	return tick{}
}

// Init begins.
func (t *terminal) Init() tea.Cmd { return t.tick }

// View is the screen.
func (t *terminal) View() tea.View {
	v := tea.NewView(t.draw())
	v.AltScreen = true
	return v
}

// Update takes up what has happened.
func (t *terminal) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	t.now = t.clock().Add(t.skew)
	var do tea.Cmd
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		t.width, t.height = m.Width, m.Height
		t.scroll()
	case tea.KeyPressMsg:
		switch t.press(m.String(), m.Text) {
		case wishQuit:
			return t, tea.Quit
		case wishSuspend:
			return t, tea.Suspend
		case wishRedraw:
			do = tea.ClearScreen
		}
	case tea.PasteMsg:
		t.paste(m.Content)
	case news:
		if m.err != nil {
			t.err = m.err
			return t, tea.Quit
		}
		if t.skew = m.skew; m.whole {
			t.lookedAt = time.Time{} // what was found may be old
		}
		t.now = t.clock().Add(t.skew)
		t.told(m)
	case tick:
		t.arrange()
		do = t.tick
	case looked:
		t.looking, t.lookedAt = false, t.now
		t.screen.looked = m
		t.arrange()
	case detail:
		t.asking = false
		if m.queue == t.detail.queue {
			t.detail = m
		}
	}
	return t, tea.Batch(do, t.look(), t.ask())
}

// look has asked for what the rows do not show, from time to time.
func (t *terminal) look() tea.Cmd {
	if t.looking || !t.begun || !t.link.up || t.now.Sub(t.lookedAt) < deathsEvery {
		return nil
	}
	t.looking = true
	var queues []tarry.QueueInfo
	for _, r := range t.board.rows {
		if r.Dead > 0 {
			queues = append(queues, r.info())
		}
	}
	now := t.now
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(t.ctx, detailLimit)
		defer cancel()
		return looked(t.deaths.look(ctx, queues, now))
	}
}

// ask has asked for what is shown of the queue that is open, unless that is known.
func (t *terminal) ask() tea.Cmd {
	d, changes := &t.detail, uint64(0)
	if r := t.board.rows[d.queue]; r != nil {
		changes = r.Changes
	}
	age := t.now.Sub(d.at)
	fresh := d.zoom == t.zoom && !d.at.IsZero() && (age < time.Second || age < detailEvery && changes == d.changes)
	if t.open() == "" || t.asking || fresh || !t.link.up {
		return nil
	}
	t.asking = true
	next := detail{queue: d.queue, zoom: t.zoom, at: t.now, changes: changes}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(t.ctx, detailLimit)
		defer cancel()
		next.ask(ctx, t.c)
		return next
	}
}

// ask asks for what falls due when, and where a server keeps that how late messages were.
func (d *detail) ask(ctx context.Context, c *tarry.Client) {
	z := &zooms[d.zoom]
	f, err := c.Forecast(ctx, d.queue, z.step, z.span)
	d.buckets, d.forecast = f.Buckets, err
	e, ok := c.Engine().(*httpengine.Engine)
	if !ok {
		return
	}
	query := "span=" + duration.Format(trendSpan) + "&step=" + duration.Format(trendStep)
	answer, err := e.Fetch(ctx, wire.QueuePath(d.queue)+"/trend", query)
	switch {
	case errors.Is(err, tarry.ErrUnsupported), errors.Is(err, tarry.ErrNotFound):
	case err != nil:
		d.failed = err
	default:
		var t wire.Trend
		if err := json.Unmarshal(answer, &t); err != nil {
			d.failed = senseless("of the last minutes", err)
			return
		}
		d.trend = &t
	}
}
