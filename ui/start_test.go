package ui_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/server/access"
	"github.com/tarryhq/tarry/ui"
)

// copied returns the program of a language that the first page copies.
func (p *tab) copied(language string) string {
	p.Helper()
	p.press(".start", language)
	p.until(`document.querySelector("pre.sheet").getAttribute("aria-label") === ` + quoted("A program for "+language))
	p.run(`window.copied = "", navigator.clipboard.writeText = t => (window.copied = t, Promise.resolve())`)
	p.run(`document.querySelector(".start > button").click()`)
	p.until(`window.copied`)
	return value[string](p, `window.copied`)
}

// runs runs a program until it has pushed a message and handled it, which it tells by said.
func (w *world) runs(language, said string, command ...string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 2**timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var out lines
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	for {
		q, err := w.c.Queue(ctx, "hello")
		if err != nil {
			w.Fatalf("%s: %v: %s", language, err, out.String())
		}
		if strings.Contains(out.String(), said) && q.Scheduled+q.Ready+q.Leased+q.Dead == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// An empty server shows how to begin, in programs that work.
func TestStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	p := w.open(desk, "#/")
	p.sees(".empty", "No queues yet")
	if got := p.copied("tarry"); !strings.HasPrefix(got, `tarry push hello '"hi"' --in 10s --server http://127.0.0.1:`) || !strings.HasSuffix(got, " -- cat") {
		t.Errorf("%s", got)
	}
	dir := t.TempDir()
	type program struct {
		language, file, said string
		command              []string
	}
	all := []program{
		{"Go", "main.go", "\"hi\"\n", []string{filepath.Join(dir, "program")}},
		{"curl", "hello.sh", `"ok":true`, []string{"sh"}},
		{"Node", "hello.mjs", "hi\n", []string{"node"}},
		{"Python", "hello.py", "hi\n", []string{"python3", "-u"}},
	}
	texts := make(map[string]string)
	for _, l := range all {
		texts[l.language] = strings.NewReplacer("10s", "0s", "10*time", "0*time").Replace(p.copied(l.language))
	}
	for _, l := range all {
		file := filepath.Join(dir, l.file)
		if err := os.WriteFile(file, []byte(texts[l.language]), 0o600); err != nil {
			t.Fatal(err)
		}
		if l.language == "Go" {
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", l.command[0], file).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		} else if _, err := exec.LookPath(l.command[0]); err != nil {
			t.Logf("SKIPPED: %v: the program in %s is not run", err, l.language)
			continue
		}
		w.runs(l.language, l.said, append(l.command, file)...)
	}
}

// Programs for a server with tokens send one.
func TestStartWithTokens(t *testing.T) {
	w := newWorld(t, kind{tokens: true})
	p := w.open(desk, "#/")
	p.fill("token", w.token("starter", access.Push|access.Work|access.Read))
	p.press("form", "Log in")
	p.sees(".empty", "No queues yet")
	t.Setenv("TARRY_TOKEN", w.token("program", access.Push|access.Work))
	for language, want := range map[string]string{"tarry": "export TARRY_TOKEN=", "Go": "?token_file=", "curl": "Bearer $TARRY_TOKEN", "Python": `os.environ["TARRY_TOKEN"]`} {
		if got := p.copied(language); !strings.Contains(got, want) {
			t.Errorf("the program in %s lacks %s: %s", language, want, got)
		}
	}
	file := filepath.Join(t.TempDir(), "hello.mjs")
	if err := os.WriteFile(file, []byte(strings.Replace(p.copied("Node"), "10s", "0s", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.runs("Node", "hi\n", "node", file)
}

// Samples are pushed after a question, and can be taken back; who may not push is not asked.
func TestSamples(t *testing.T) {
	t.Parallel()
	for _, l := range sizes {
		w := newWorld(t, kind{})
		p := w.open(l, "#/")
		p.sees(".empty", "No queues yet")
		p.fits(fmt.Sprintf("how to begin, %d wide", l.width))
		p.accessible("how to begin", axe(t), "")
		p.press(".start", "Push 50 sample messages")
		p.sees("dialog", "50 messages go to the queue hello")
		p.press("dialog", "Push 50")
		p.sees(".queues .name", "hello")
		if q, err := w.c.Queue(t.Context(), "hello"); err != nil || q.Scheduled != 50 {
			t.Errorf("%+v, %v", q, err)
		}
		p.sees(".next-hour", "50 messages in 1 queue")
		p.undo("50 messages are pushed")
		p.sees(".toast", "50 messages are cancelled")
		if q, err := w.c.Queue(t.Context(), "hello"); err != nil || q.Scheduled != 0 {
			t.Errorf("%+v, %v", q, err)
		}
	}
	reading := newWorld(t, kind{ui: ui.Config{ReadOnly: true}}).open(desk, "#/")
	reading.sees(".empty", "No queues yet")
	reading.misses(".start", "sample")
}

// The first page begins with what falls due in the next hour, in all queues and in each.
func TestNextHour(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	w.push("mail", `{}`, tarry.In(10*time.Minute))
	w.push("mail", `{}`, tarry.In(50*time.Minute))
	w.push("orders", `{}`, tarry.In(50*time.Minute))
	w.push("yearly", `{}`, tarry.In(300*24*time.Hour))
	for _, l := range sizes {
		p := w.open(l, "#/")
		p.sees(".next-hour", "3 messages in 2 queues, at most 2 a minute")
		p.until(`document.querySelectorAll(".next-hour rect").length === 2`)
		const coming = `[...document.querySelectorAll(".queues .rows .row")].map(e => e.querySelector(".name").innerText.trim() + ":" + (e.querySelector(".coming")?.getAttribute("aria-label") ?? "")).join()`
		p.until(coming + ` === "mail:2 messages fall due in the next hour,orders:1 message falls due in the next hour,yearly:"`)
		if first := value[string](p, `document.querySelector("main section").className`); first != "next-hour" {
			t.Errorf("the page begins with %q", first)
		}
		p.fits(fmt.Sprintf("the next hour, %d wide", l.width))
	}
	p := w.open(desk, "#/")
	p.sees(".next-hour", "3 messages")
	p.do(chromedp.EmulateViewport(1130, 800))
	p.fits("the next hour, 1130 wide")
}
