package ui_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/demo"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/server/access"
	"github.com/tarryhq/tarry/trend"
	"github.com/tarryhq/tarry/ui"
)

// browser is the one Chromium of all tests.
var browser struct {
	once sync.Once
	ctx  context.Context
	stop context.CancelFunc
	err  error
}

var timeout = flag.Duration("browser-timeout", time.Minute, "how long a step in the browser may take")

func TestMain(m *testing.M) { leaktest.Main(withBrowser{m}) }

type withBrowser struct{ *testing.M }

// Run stops the browser after the tests.
func (m withBrowser) Run() int {
	defer func() {
		if browser.stop != nil {
			browser.stop()
		}
	}()
	return m.M.Run()
}

// chromium starts the browser, or skips the test where there is none.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("TARRY_TEST_SERVERS") == "require" {
			t.Fatal("chromium is not in the PATH, and TARRY_TEST_SERVERS=require: run make servers")
		}
		t.Skip("chromium is not in the PATH: what the dashboard does in a browser is not tested; make servers installs it")
	}
	browser.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.IgnoreCertErrors,
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
			chromedp.Flag("font-render-hinting", "none"), chromedp.WSURLReadTimeout(time.Minute))
		alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, stop := chromedp.NewContext(alloc)
		browser.ctx = ctx
		browser.stop = func() {
			_ = chromedp.Cancel(ctx)
			stop()
			stopAlloc()
		}
		browser.err = chromedp.Do(ctx)
	})
	if browser.err != nil {
		t.Fatalf("chromium does not start: %v", browser.err)
	}
	return browser.ctx
}

// world is a server with the dashboard before it.
type world struct {
	*testing.T
	c     *tarry.Client
	url   string
	file  access.File
	guard *access.Guard
	audit *lines

	left chan struct{} // has one for each time that a request to drop dead letters has ended, or its client has gone
}

// kind is what a world is like.
type kind struct {
	shop        *demo.Shop       // whose past is in the store; nil: the store is empty
	now         func() time.Time // the store's clock; nil: the real one, or the shop's
	tokens, tls bool
	path        string // below which it is mounted
	ui          ui.Config
	viewers     int                              // who may watch; 0: as many as usual
	beanstalk   func() (int64, int64)            // counts clients of beanstalkd; nil: they are not served
	intakes     func() []intake.Status           // nil: there are none
	engine      func(engine.Whole) engine.Engine // stands before the one in memory; nil: nothing does
}

func newWorld(t *testing.T, k kind) *world {
	t.Helper()
	w := &world{T: t, audit: new(lines), left: make(chan struct{}, 8)}
	now := time.Now
	switch {
	case k.now != nil:
		now = k.now
	case k.shop != nil:
		now = k.shop.Now
	}
	trends := trend.New(&trend.Config{Now: now})
	var e engine.Engine = memengine.New(&memengine.Config{Now: now, History: engine.History{Keep: 24 * time.Hour}})
	if k.engine != nil {
		e = k.engine(e.(engine.Whole))
	}
	w.c = tarry.New(e, &tarry.Config{Meter: trends.Meter()})
	if k.shop != nil {
		if err := k.shop.Play(t.Context(), w.c); err != nil {
			t.Fatal(err)
		}
	}
	cfg := &server.Config{Version: "1.2.3", Audit: access.NewAudit(w.audit), Trends: trends, MaxViewers: k.viewers, Beanstalk: k.beanstalk, Intakes: k.intakes}
	if k.tokens {
		w.file = access.File(filepath.Join(t.TempDir(), "tokens"))
		w.token("first", access.Admin)
		var err error
		w.guard, err = access.NewGuard(w.file, &access.GuardConfig{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Guard = w.guard
	}
	pages := ui.New(server.New(w.c, cfg), &k.ui)
	var h http.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/drop") {
			context.AfterFunc(r.Context(), func() {
				select {
				case w.left <- struct{}{}:
				default:
				}
			})
		}
		pages.ServeHTTP(rw, r)
	})
	if k.path != "" {
		mux := http.NewServeMux()
		mux.Handle(k.path+"/", http.StripPrefix(k.path, h))
		h = mux
	}
	s := httptest.NewUnstartedServer(h)
	if k.tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	w.url = s.URL + k.path + "/"
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		_ = w.c.Close()
		_ = w.c.Engine().Close()
	})
	return w
}

// token makes one, and returns what proves it.
func (w *world) token(name string, scopes access.Scope, queues ...string) string {
	w.Helper()
	if queues == nil {
		queues = []string{"*"}
	}
	_, secret, err := w.file.Create(access.Token{Name: name, Scopes: scopes, Queues: queues}, time.Now())
	if err != nil {
		w.Fatal(err)
	}
	if w.guard != nil {
		w.guard.Refresh()
	}
	return secret
}

// push pushes, and returns the id.
func (w *world) push(queue, body string, opts ...tarry.PushOption) tarry.ID {
	w.Helper()
	topic := tarry.NewTopic[json.RawMessage](queue)
	got, err := topic.Push(w.Context(), w.c, json.RawMessage(body), opts...)
	if err != nil {
		w.Fatal(err)
	}
	return got.ID
}

// settle settles a lease.
func (w *world) settle(s tarry.Settlement) {
	w.Helper()
	results, err := w.c.Settle(w.Context(), []tarry.Settlement{s})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		w.Fatal(err)
	}
}

// lines is a writer whose text can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tab is a page in the browser.
type tab struct {
	*testing.T
	ctx context.Context
	url string

	mu     sync.Mutex
	faults []string // what the page says is wrong
}

// look is how a page is looked at.
type look struct {
	width, height int
	dark          bool
}

var desk = look{1280, 800, false}

// sizes are those at which pages are looked at: a phone, a tablet, a desk.
var sizes = []look{{360, 740, true}, {800, 1024, false}, desk}

// open shows the dashboard at a place behind #, in a tab with cookies of its own.
func (w *world) open(l look, at string) *tab {
	w.Helper()
	base := chromium(w.T)
	ctx, cancel := chromedp.NewContext(base, chromedp.WithNewBrowserContext())
	w.Cleanup(cancel)
	p := &tab{T: w.T, ctx: ctx, url: w.url}
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		w.Fatal(err)
	}
	tell(p, log.Enable, cdp.Empty{})
	tell(p, runtime.Enable, cdp.Empty{})
	tell(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Berlin"})
	p.dim(l.dark)
	p.do(chromedp.EmulateViewport(int64(l.width), int64(l.height)), chromedp.Navigate(w.url+at))
	w.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range p.faults {
			w.Errorf("the page says: %s", f)
		}
	})
	return p
}

// dim has the system's setting be dark, or light.
func (p *tab) dim(dark bool) {
	p.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	tell(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// hear notes what the page complains of: errors, and what the policy forbids.
func (p *tab) hear(event any) {
	fault := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			fault += ": " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, a := range e.Args {
				fault += string(a.Value) + " " + a.Description
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "Failed to load resource") {
			fault = e.Entry.Text
		}
	}
	if fault != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = append(p.faults, fault)
	}
}

// forgive takes back what the page complained of so far.
func (p *tab) forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// tell sends the page's target a command.
func tell[P, R any](p *tab, cmd cdp.Command[P, R], params P) R {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, *timeout)
	defer cancel()
	r, err := chromedp.Call(ctx, cmd, params)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, *timeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.Fatalf("%v\nthe page shows: %s", err, p.text("body"))
	}
}

// value evaluates an expression in the page, and awaits what it promises.
func value[T any](p *tab, expression string) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, *timeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// run is value where that does not matter.
func (p *tab) run(expression string) {
	p.Helper()
	value[chromedp.Void](p, expression)
}

// text is what the first element that fits a selector shows.
func (p *tab) text(selector string) string {
	ctx, cancel := context.WithTimeout(p.ctx, *timeout)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector(`+quoted(selector)+`)?.innerText ?? ""`))
	return text
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string is fine
	return string(b)
}

// sees waits until the first element that fits a selector shows a text.
func (p *tab) sees(selector, text string) {
	p.Helper()
	p.until(`[...document.querySelectorAll(` + quoted(selector) + `)].some(e => e.innerText.includes(` + quoted(text) + `))`)
}

// misses waits until no element that fits a selector shows a text.
func (p *tab) misses(selector, text string) {
	p.Helper()
	p.until(`![...document.querySelectorAll(` + quoted(selector) + `)].some(e => e.innerText.includes(` + quoted(text) + `))`)
}

// until waits until an expression is true.
func (p *tab) until(expression string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, *timeout)
	defer cancel()
	for {
		// While the page is loaded anew there is nothing to ask.
		held, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`!!(`+expression+`)`))
		if held {
			return
		}
		if ctx.Err() != nil {
			p.Fatalf("%s never holds: %v\nthe page shows: %s", expression, err, p.text("body"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// press clicks on the first button, link or tab in a part of the page with a text.
func (p *tab) press(part, text string) {
	p.Helper()
	find := `[...document.querySelectorAll(` + quoted(part) + `)].flatMap(e => [e, ...e.querySelectorAll("button, a, summary")]).find(e => e.matches("button, a, summary") && !e.disabled && e.innerText.trim().startsWith(` + quoted(text) + `))`
	p.click(find)
}

// click waits for an element and clicks on it in the same step, since a list may be drawn anew at any moment.
func (p *tab) click(find string) {
	p.Helper()
	p.until(`(() => { const e = ` + find + `; e?.click(); return e })()`)
}

// fill writes into the field of a name.
func (p *tab) fill(name, text string) {
	p.Helper()
	field := `[name="` + name + `"]`
	p.until(`(() => { const f = document.querySelector(` + quoted(field) + `); if (!f) return; f.focus(); f.value = ` + quoted(text) + `; f.dispatchEvent(new Event("input", {bubbles: true})); f.dispatchEvent(new Event("change", {bubbles: true})); return true })()`)
}

// undo takes back what a text tells of.
func (p *tab) undo(text string) {
	p.Helper()
	p.click(`[...document.querySelectorAll(".toast")].find(e => e.innerText.includes(` + quoted(text) + `))?.querySelector("button")`)
}

// holds has what is to begin after seconds of grace wait until goOn is called. A busy machine
// may need longer than the grace to see it, and to take it back.
func (p *tab) holds() (goOn func()) {
	p.Helper()
	p.run(`(() => {
		const after = window.setTimeout, held = []
		window.setTimeout = (f, ms, ...more) => ms === 1000 && String(f).includes("[native code]") ? (held.push(f), 0) : after(f, ms, ...more)
		window.goOn = () => { window.setTimeout = after; held.forEach(f => f()) }
	})()`)
	return func() {
		p.Helper()
		p.run(`goOn()`)
	}
}

// to shows another place behind #.
func (p *tab) to(at string) {
	p.Helper()
	p.run(`location.hash = ` + quoted(at))
}

// client is one for the tests' own requests.
func client() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
