//go:build linux

// Package top_test runs tarry top on a terminal.
package top_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/internal/nettest"
)

// terminalOf is a terminal: what a program writes to it stands on its screen.
type terminalOf struct {
	*testing.T
	ours, theirs *os.File
	before       unix.Termios

	mu      sync.Mutex
	screen  *vt.Emulator
	changed chan struct{}
}

func newTerminal(t *testing.T, width, height int) *terminalOf {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := &terminalOf{T: t, ours: ours, theirs: theirs, screen: vt.NewEmulator(width, height), changed: make(chan struct{})}
	x.before = x.modes()
	x.size(width, height)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		b := make([]byte, 4096)
		for {
			n, err := ours.Read(b)
			x.mu.Lock()
			_, _ = x.screen.Write(b[:n])
			close(x.changed)
			x.changed = make(chan struct{})
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	tasks.Go(func() { _, _ = io.Copy(ours, x.screen) }) // what the terminal answers when it is asked
	t.Cleanup(func() {
		_ = theirs.Close()
		_ = ours.Close()
		_ = x.screen.InputPipe().(io.Closer).Close()
		tasks.Wait()
	})
	return x
}

func (x *terminalOf) modes() unix.Termios {
	x.Helper()
	m, err := unix.IoctlGetTermios(int(x.theirs.Fd()), unix.TCGETS)
	if err != nil {
		x.Fatal(err)
	}
	return *m
}

func (x *terminalOf) size(width, height int) {
	x.Helper()
	x.mu.Lock()
	x.screen.Resize(width, height)
	x.mu.Unlock()
	if err := pty.Setsize(x.ours, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		x.Fatal(err)
	}
}

// key writes as a keyboard does.
func (x *terminalOf) key(keys string) {
	x.Helper()
	if _, err := io.WriteString(x.ours, keys); err != nil {
		x.Fatal(err)
	}
}

// see waits until the screen shows what a pattern says.
func (x *terminalOf) see(pattern string) {
	x.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		x.mu.Lock()
		text, changed := x.screen.String(), x.changed
		x.mu.Unlock()
		if re.MatchString(text) {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			x.Fatalf("%q is not on the screen within %s:\n%s", pattern, patience, text)
		}
	}
}

// restored fails the test unless the terminal is as it was.
func (x *terminalOf) restored() {
	x.Helper()
	limit := time.Now().Add(patience)
	for { // what was written last may be on its way
		x.mu.Lock()
		alt, hidden, changed := x.screen.IsAltScreen(), x.screen.CursorHidden(), x.changed
		x.mu.Unlock()
		if !alt && !hidden {
			break
		}
		select {
		case <-changed:
		case <-time.After(time.Until(limit)):
			x.Fatalf("other screen: %v, no cursor: %v", alt, hidden)
		}
	}
	if now := x.modes(); now != x.before {
		x.Errorf("the terminal is left with %+v, it was %+v", now, x.before)
	}
}

// top starts tarry top on the terminal, as a process of its own.
func (x *terminalOf) top(server string, args ...string) *exec.Cmd {
	x.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"top", "--server", server}, args...)...)
	cmd.Env = []string{"TARRY_TEST_MAIN=1", "TERM=xterm-256color", "LANG=C.UTF-8"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.theirs, x.theirs, x.theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func (x *terminalOf) ended(cmd *exec.Cmd) {
	x.Helper()
	if err := cmd.Wait(); err != nil {
		x.Errorf("it ended with %v", err)
	}
	x.restored()
}

func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	address := fmt.Sprintf("127.0.0.1:%d", nettest.FreePort(t))
	w, stop := serve(t, address)
	w.must(t, "push", "order.unpaid", "x", "--in", "2h")
	x := newTerminal(t, 80, 24)
	cmd := x.top("http://" + address)
	x.see(`^tarry top  live  \d\d:\d\d:\d\dZ  http://` + address + `  `)
	x.see(`^order\.unpaid +0 +1 +0 +0 `)

	w.must(t, "push", "mail", "x", "--in", "1h")
	x.see(`^mail +0 +1 `)
	w.must(t, "push", "mail", "x")
	x.see(`^mail +1 +1 `)
	x.see(`2 queues: 2 scheduled, 1 ready`)

	x.key("/MAI")
	x.see(`^/MAI`)
	x.key("\r")
	x.see(`1-1 of 1 with MAI`)
	x.key("\r") // opens it
	x.see(`^due in the next hour, by the minute: \d`)
	x.see(`^in 5m: 0 handled, 0 retried, 0 died; lateness p50 -, p99 -, worst -`)
	w.must(t, "push", "mail", "x", "--in", "10m")
	x.see(`by the minute: [12], most 1 at \d\d:\d\d; [01] overdue`)
	x.see(`^\d\d:\d\d +1  #{40}`)
	x.key("h")
	x.see(`by the hour: [23], most`)
	x.size(50, 12)
	x.see(`^2 scheduled, 1 ready, 0 leased, 0 dead, 0 keys re~$`)
	x.size(100, 30)
	x.see(`^2 scheduled, 1 ready, 0 leased, 0 dead, 0 keys remembered`)
	x.key("\x1b")
	x.see(`1-1 of 1 with MAI`)
	x.key("\x1b")
	x.see(`1-2 of 2  \?`)

	stop()
	x.see(`no answer`)
	x.see(`what is shown is old: `)
	x.see(`^mail +1 +2 `)
	serve(t, address)
	x.see(`live  \d\d:`)
	x.see(`no queues`) // it had them in memory
	w.must(t, "push", "news", "x", "--in", "1h")
	x.see(`^news +0 +1 `)

	x.key("?")
	x.see(`99 of 100 were no later`)
	x.key("q")
	x.ended(cmd)

	for _, end := range []func(*exec.Cmd){
		func(*exec.Cmd) { x.key("\x03") },
		func(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) },
	} {
		cmd := x.top("http://"+address, "--filter", "news")
		x.see(`1-1 of 1 with news`)
		end(cmd)
		x.ended(cmd)
	}
}

// lastKey is a goroutine that the library leaves behind when a key, or an answer of the
// terminal, comes just as it ends: nobody takes what it has read. The process ends then.
var lastKey = goleak.IgnoreAnyFunction("github.com/charmbracelet/ultraviolet.(*TerminalReader).sendEvents")

// inProcess runs tarry top on a terminal within the test's process, until ctx ends.
func (x *terminalOf) inProcess(ctx context.Context, w world) (code chan int, stderr *bytes.Buffer) {
	stderr, code = new(bytes.Buffer), make(chan int, 1)
	p := w.program(x.theirs, stderr, "top")
	p.Stdin = x.theirs
	go func() { code <- p.Run(ctx) }()
	return code, stderr
}

// code is the exit code of what runs in this process.
func (x *terminalOf) code(code chan int) int {
	x.Helper()
	select {
	case c := <-code:
		return c
	case <-time.After(patience):
		x.Fatal("it has not ended")
		return -1
	}
}

func TestTopOnAStoreWithoutAServer(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{"TARRY_STORE=disk:data", "TERM=xterm", "NO_COLOR=1"}
	w.must(t, "push", "mail", "x", "--in", "30m")
	x := newTerminal(t, 80, 24)
	before := goleak.IgnoreCurrent()
	code, stderr := x.inProcess(t.Context(), w)
	x.see(`^tarry top  live  \S+  disk:data `)
	x.see(`^QUEUEv  `)
	x.see(`^mail +0 +1 +0 +0 +- +- +- +- +2`)
	x.key("\r")
	x.see(`by the minute: 1, most 1 at`)
	x.mu.Lock()
	if styled := x.screen.Render(); regexp.MustCompile(`\x1b\[[0-9;]*3[0-9]m`).MatchString(styled) {
		t.Errorf("coloured in spite of NO_COLOR: %q", styled)
	}
	x.mu.Unlock()
	x.key("q")
	if c := x.code(code); c != exitOK {
		t.Errorf("exit code %d: %s", c, stderr)
	}
	x.restored()
	leaktest.None(t, before, lastKey)
}

// What ends it ends all that it began, also while the server is away.
func TestTopEndsWithItsContext(t *testing.T) {
	w, stop := serve(t, "127.0.0.1:0")
	w = append(w, "TERM=xterm")
	x := newTerminal(t, 80, 24)
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code, stderr := x.inProcess(ctx, w)
	x.see(`no queues`)
	cancel()
	if c := x.code(code); c != exitOK || stderr.String() != "" {
		t.Errorf("exit code %d: %s", c, stderr)
	}
	x.restored()

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	code, stderr = x.inProcess(ctx, w)
	x.see(`no queues`)
	stop()
	x.see(`no answer`)
	cancel()
	if c := x.code(code); c != exitOK || stderr.String() != "" {
		t.Errorf("exit code %d: %s", c, stderr)
	}
	x.restored()
	leaktest.None(t, before, lastKey)
	code, stderr = x.inProcess(t.Context(), w)
	if c := x.code(code); c != exitUnavailable || !strings.Contains(stderr.String(), "is it running?") {
		t.Errorf("without a server: exit code %d: %s", c, stderr)
	}
	x.restored()
}
