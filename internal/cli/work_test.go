//go:build unix

package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry"
)

func TestWorkRunsACommandForEachMessage(t *testing.T) {
	w, _ := served(t, "mem:")
	r := w.start(t, "work", "mail", "--", "sh", "-c", `echo "$TARRY_QUEUE $TARRY_ID $TARRY_KEY $TARRY_ATTEMPT $TARRY_DUE $(cat)"`)
	r.stderr.await(t, "waiting for messages of mail")
	pushed := object(t, w.must(t, "push", "mail", "hello there", "--key", "ann", "--in", "20ms", "--json"))
	want := "mail " + pushed["id"].(string) + " ann 1 " + pushed["due"].(string) + " hello there\n"
	r.stderr.await(t, `acked mail id \d+ key ann in \S+, \S+ late\n`)
	if got := r.stdout.String(); got != want {
		t.Errorf("the command wrote %q, want %q", got, want)
	}
	if code := r.stop(t); code != exitOK {
		t.Errorf("exit code %d: %s", code, r.stderr)
	}
	run1(t, w, step{args: "get mail ann", code: exitNotFound, stderr: "tarry: .*\n"})
}

func TestWorkIgnoresBodyThatTheCommandDoesNotRead(t *testing.T) {
	w, _ := served(t, "mem:")
	w.stdin = strings.Repeat("x", 1<<20)
	w.must(t, "push", "mail", "-")
	r := w.start(t, "work", "mail", "--", "true")
	r.stderr.await(t, `acked mail`)
}

func TestWorkBuriesOn65(t *testing.T) {
	w, _ := served(t, "mem:")
	w.must(t, "push", "mail", "x", "--key", "ann")
	r := w.start(t, "work", "mail", "--", "sh", "-c", "echo no such customer >&2; exit 65")
	r.stderr.await(t, "no such customer\n(?s:.*)buried mail id \\d+ key ann: exit status 65")
	run1(t, w, step{args: "dead ls mail", stdout: `ID .*\n\d+  ann  dead  .*1/20  exit status 65: no such customer\n`})
	r.stop(t)
	run1(t, w, step{args: "dead redrive mail --yes", stdout: "redriven 1 message of mail\n"})
	run1(t, w, step{args: "ls mail", stdout: `ID .*\n\d+  ann  ready .*0/20\n`})
}

func TestWorkRetriesOnOtherExits(t *testing.T) {
	for script, reason := range map[string]string{
		"echo first >&2; echo the mail server is away >&2; exit 75": "exit status 75: first the mail server is away",
		"kill -9 $$": "signal: killed",
	} {
		w, _ := served(t, "mem:")
		w.must(t, "push", "mail", "x", "--key", "ann", "--backoff", "1h")
		r := w.start(t, "work", "mail", "--", "sh", "-c", script)
		r.stderr.await(t, "retried mail id .*again at")
		run1(t, w, step{args: "get mail ann", stdout: `.*state  scheduled\n.*attempt  1 of 20\n.*last error  ` + reason + `\n.*`})
		r.stop(t)
	}
}

func TestWorkLastAttemptDies(t *testing.T) {
	w, _ := served(t, "mem:")
	w.must(t, "push", "mail", "x", "--max-attempts", "1")
	r := w.start(t, "work", "mail", "--", "false")
	r.stderr.await(t, "died mail id")
	r.stop(t)
	id := object(t, w.must(t, "dead", "ls", "mail", "--json"))["id"].(string)
	run1(t, w, step{args: "dead drop mail " + id + " --yes", stdout: "dropped 1 message of mail\n"})
	run1(t, w, step{args: "queues mail", stdout: `.*\nmail  0  0  0  0  0  0  -  -  -\n`})
}

func TestDeadDropSparesTheLiving(t *testing.T) {
	w, _ := served(t, "mem:")
	live := object(t, w.must(t, "push", "mail", "x", "--in", "1h", "--json"))["id"].(string)
	w.must(t, "push", "mail", "x")
	r := w.start(t, "work", "mail", "--", "sh", "-c", "exit 65")
	r.stderr.await(t, "buried mail id")
	r.stop(t)
	run1(t, w, step{args: "dead drop mail " + live + " --yes", code: exitConflict, stderr: "tarry: drop mail id N: changed meanwhile .it is scheduled, not dead.*\n"})
	run1(t, w, step{args: "dead drop mail --yes", stdout: "dropped 1 message of mail\n"})
	w.must(t, "get", "mail", "--id", live)
}

// pipe makes a named pipe that commands hold open, so that a test learns when the
// last of them is gone: reading then ends.
func pipe(t *testing.T) (path string, ended chan string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ended = make(chan string, 1)
	go func() {
		f, err := os.Open(path)
		if err != nil {
			ended <- err.Error()
			return
		}
		defer f.Close()
		text, _ := io.ReadAll(f)
		ended <- string(text)
	}()
	return path, ended
}

// hang is a command that starts another; neither ends by itself.
const hang = `exec 9>"$0"; echo running; sleep 1000 & sleep 1000`

func TestWorkKillsTheGroupWhenTheLeaseIsLost(t *testing.T) {
	w, s := served(t, "mem:")
	w.must(t, "push", "mail", "x")
	path, ended := pipe(t)
	r := w.start(t, "work", "mail", "--ttr", "300ms", "--", "sh", "-c", hang, path)
	r.stdout.await(t, "running")
	s.stop(t) // nobody renews the lease any more
	r.stderr.await(t, "lease_lost mail id")
	<-ended
}

func TestWorkKillsTheGroupAtItsLimit(t *testing.T) {
	w, _ := served(t, "mem:")
	w.must(t, "push", "mail", "x", "--key", "ann", "--backoff", "1ms", "--max-attempts", "1000")
	path, ended := pipe(t)
	r := w.start(t, "work", "mail", "--limit", "300ms", "--", "sh", "-c", hang, path)
	<-ended // of one that came to open it within its time
	r.stderr.await(t, "retried mail id")
	r.stop(t)
	run1(t, w, step{args: "get mail ann", stdout: `.*last error  the command was killed: the handler's time is over.*`})
}

func TestWorkDrains(t *testing.T) {
	w, _ := served(t, "mem:")
	w.must(t, "push", "mail", "x")
	path := filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r := w.start(t, "work", "mail", "--", "sh", "-c", `echo running; read line <"$0"; echo "$line"`, path)
	r.stdout.await(t, "running")
	r.interrupt()
	if err := os.WriteFile(path, []byte("finished\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	r.stdout.await(t, "finished")
	r.stderr.await(t, "acked mail id")
}

// What stood in line when a worker is told to end has no attempt counted.
func TestWorkCountsNoAttemptOfWhatItDoesNotBegin(t *testing.T) {
	w, _ := served(t, "mem:")
	for range 40 {
		w.must(t, "push", "mail", "x")
	}
	// The sixth runs until the worker is told to end.
	flag := filepath.Join(t.TempDir(), "go")
	r := w.start(t, "work", "mail", "--concurrency", "1", "--", "sh", "-c", `echo x >>"$0.n"; [ $(wc -l <"$0.n") -lt 6 ] || until [ -e "$0" ]; do sleep 0.01; done`, flag)
	r.stderr.await(t, "(?s)(acked mail.*){5}")
	r.interrupt()
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(t); code != exitOK {
		t.Errorf("exit code %d: %s", code, r.stderr)
	}
	out := w.must(t, "ls", "mail")
	if lines := strings.Count(out, "\n") - 1; lines < 1 || strings.Count(out, "  ready  ") != lines || strings.Count(out, "0/20\n") != lines {
		t.Errorf("left are %s", out)
	}
}

func TestWorkGivesBackWhatItsDrainInterrupts(t *testing.T) {
	w, _ := served(t, "mem:")
	w.must(t, "push", "mail", "x", "--key", "ann")
	path, ended := pipe(t)
	r := w.start(t, "work", "mail", "--drain", "0s", "--", "sh", "-c", hang, path)
	r.stdout.await(t, "running")
	if code := r.stop(t); code != exitFailed {
		t.Errorf("exit code %d, want %d: %s", code, exitFailed, r.stderr)
	}
	<-ended
	run1(t, w, step{args: "get mail ann", stdout: `.*state  ready\n.*attempt  0 of 20\n.*`})
}

func TestTailWriterKeepsTheEnd(t *testing.T) {
	w := &tailWriter{to: io.Discard, most: 8}
	for _, s := range []string{"the ", "beginning and ", "ü", "the end\n"} {
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("Write(%q) = %d, %v", s, n, err)
		}
	}
	if got := w.String(); got != "the end" {
		t.Errorf("kept %q", got)
	}
	cut := &tailWriter{to: io.Discard, most: 2}
	_, _ = cut.Write([]byte("aü€"))
	if got := cut.String(); got != "" {
		t.Errorf("a cut rune is kept as %q", got)
	}
}

func TestTell(t *testing.T) {
	for want, e := range map[string]tarry.Event{
		"": {Kind: tarry.Started, Queue: "q"},
		"tarry: dropped 3 messages of q past expiry":            {Kind: tarry.Expired, Queue: "q", Count: 3},
		"tarry: 2 messages of q died: all attempts are used up": {Kind: tarry.Died, Queue: "q", Count: 2},
		"tarry: snoozed q id 7 key k":                           {Kind: tarry.Snoozed, Queue: "q", ID: 7, Key: "k"},
	} {
		if got := tell(e); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWorkBuriesAKeyThatNoCommandCanBeGiven(t *testing.T) {
	w, _ := served(t, "mem:")
	w.must(t, "push", "mail", "x", "--key", "a\x00b")
	r := w.start(t, "work", "mail", "--", "true")
	r.stderr.await(t, "buried mail id")
	run1(t, w, step{args: "dead ls mail", stdout: `ID .*1/20  the key holds a NUL byte.*\n`})
}
