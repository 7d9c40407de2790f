package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// TestMain lets the test binary be the program, for what starts it again.
func TestMain(m *testing.M) {
	if os.Getenv("TARRY_TEST_MAIN") != "" {
		os.Exit(Main())
	}
	os.Exit(pgtest.Main(m).Run())
}

// patience is how long something may take on a machine that is busy with other things.
const patience = 3 * time.Minute

// world is what a Program of a test sees of the world.
type world struct {
	reloads  <-chan os.Signal // wishes to have files read again
	drains   <-chan os.Signal // wishes that clients of beanstalkd put no more
	env      []string
	stdin    string
	terminal bool
}

// outcome is what a Program did.
type outcome struct {
	code           int
	stdout, stderr string
}

// tarry runs the command line in this process.
func (w world) tarry(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := w.program(&stdout, &stderr, args...).Run(t.Context())
	return outcome{code, stdout.String(), stderr.String()}
}

func (w world) program(stdout, stderr interface{ Write([]byte) (int, error) }, args ...string) *Program {
	return &Program{
		Args:     args,
		Env:      append([]string{"PATH=" + os.Getenv("PATH"), "TARRY_TEST_MAIN=1", "TARRY_TIMEOUT=" + patience.String()}, w.env...),
		Stdin:    strings.NewReader(w.stdin),
		Stdout:   stdout,
		Stderr:   stderr,
		Terminal: w.terminal,
		Now:      time.Now,
		Self:     os.Args[0],
		Reloads:  func() (<-chan os.Signal, func()) { return w.reloads, func() {} },
		Drains:   func() (<-chan os.Signal, func()) { return w.drains, func() {} },
	}
}

// must fails the test unless the command succeeds, and returns what it printed.
func (w world) must(t *testing.T, args ...string) string {
	t.Helper()
	o := w.tarry(t, args...)
	if o.code != exitOK {
		t.Fatalf("tarry %s: exit code %d\n%s%s", strings.Join(args, " "), o.code, o.stdout, o.stderr)
	}
	return o.stdout
}

// object decodes one line of JSON.
func object(t *testing.T, line string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return m
}

// awaited is a writer on which a test awaits what a running Program writes.
type awaited struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func newAwaited() *awaited { return &awaited{changed: make(chan struct{})} }

func (a *awaited) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text.Write(b)
	close(a.changed)
	a.changed = make(chan struct{})
	return len(b), nil
}

func (a *awaited) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.String()
}

// await returns what pattern matches, once it does.
func (a *awaited) await(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		a.mu.Lock()
		text, changed := a.text.String(), a.changed
		a.mu.Unlock()
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("%q was not written within %s, but this:\n%s", pattern, patience, text)
		}
	}
}

// running is a Program that goes on until it is stopped.
type running struct {
	stdout, stderr *awaited
	interrupt      context.CancelFunc
	exited         chan int
}

// start runs a command in the background; the test's end stops it.
func (w world) start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{newAwaited(), newAwaited(), cancel, make(chan int, 1)}
	p := w.program(r.stdout, r.stderr, args...)
	go func() { r.exited <- p.Run(ctx) }()
	t.Cleanup(func() { r.stop(t) })
	return r
}

// stop interrupts and returns the exit code.
func (r *running) stop(t *testing.T) int {
	t.Helper()
	r.interrupt()
	return r.wait(t)
}

func (r *running) wait(t *testing.T) int {
	t.Helper()
	select {
	case code := <-r.exited:
		r.exited <- code
		return code
	case <-time.After(patience):
		t.Fatalf("it did not end within %s:\n%s%s", patience, r.stdout, r.stderr)
		return -1
	}
}

// served starts a server on a store and returns a world whose commands talk to it.
func served(t *testing.T, store string, args ...string) (world, *running) {
	t.Helper()
	s := world{}.start(t, append([]string{"serve", "--store", store, "--http", "127.0.0.1:0"}, args...)...)
	url := s.stdout.await(t, `listens on (http://\S+)\n(?s:.*)try`)[1]
	return world{env: []string{"TARRY_SERVER=" + url}}, s
}

var (
	anyTime   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	anyAway   = regexp.MustCompile(`(^|[( ])(in ([0-9.]+(h|m|s|ms|µs))+|([0-9.]+(h|m|s|ms|µs))+ ago)`)
	anyID     = regexp.MustCompile(`\bid \d+`)
	rightAway = strings.NewReplacer("(now)", "(AWAY)", ": now,", ": AWAY,", "  now", "  AWAY")
	blanks    = regexp.MustCompile(` {2,}`)
)

// plain makes output comparable: times, ids and the width of columns vary.
func plain(s string) string {
	s = anyTime.ReplaceAllString(s, "TIME")
	s = anyAway.ReplaceAllString(s, "${1}AWAY")
	s = rightAway.Replace(s)
	s = anyID.ReplaceAllString(s, "id N")
	return blanks.ReplaceAllString(s, "  ")
}
