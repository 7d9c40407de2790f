package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestServeKeepsMessages(t *testing.T) {
	t.Chdir(t.TempDir())
	w, s := served(t, "disk:data")
	dir, err := filepath.Abs("data")
	if err != nil {
		t.Fatal(err)
	}
	if out := s.stdout.String(); !strings.Contains(out, "messages lie in "+dir+"\n") || strings.Count(out, "\n") != 3 {
		t.Errorf("serve prints:\n%s", out)
	}
	w.must(t, "push", "mail", "x", "--key", "ann", "--in", "1h")
	if code := s.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, s.stderr)
	}
	world{}.must(t, "get", "mail", "ann", "--store", "disk:data")
	w, _ = served(t, "disk:data")
	w.must(t, "get", "mail", "ann")
}

func TestServeSuggestsACurlLineThatWorks(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: its line cannot be tried")
	}
	w, s := served(t, "mem:")
	line := s.stdout.await(t, `try: (curl .*)\n`)[1]
	out, err := exec.CommandContext(t.Context(), "sh", "-c", line+" -s").Output()
	if err != nil || object(t, string(out))["outcome"] != "created" {
		t.Fatalf("%s: %s %v", line, out, err)
	}
	w.must(t, "get", "hello", "greeting")
}

func TestServePortInUse(t *testing.T) {
	w, _ := served(t, "mem:")
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	run1(t, w, step{args: "serve --store mem: --http " + strings.TrimPrefix(url, "http://"), code: exitFailed,
		stderr: `tarry: cannot listen on 127.0.0.1:\d+: the port is in use \(stop what .*--http 127.0.0.1:0\)\n`})
}

func TestServeDirectoryInUse(t *testing.T) {
	t.Chdir(t.TempDir())
	served(t, "disk:data")
	for _, args := range []string{"serve --store disk:data --http 127.0.0.1:0", "queues --store disk:data"} {
		run1(t, world{}, step{args: args, code: exitFailed, stderr: `tarry: .*data is in use by pid \d+ .*\n`})
	}
}

func TestServeDirectoryNotOurs(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("letter.txt", []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	run1(t, world{}, step{args: "serve --store disk:. --http 127.0.0.1:0", code: exitUsage, stderr: `tarry: .*\n`})
}

func TestServeSaysWhoCanReachIt(t *testing.T) {
	s := world{}.start(t, "serve", "--store", "mem:", "--http", ":0")
	s.stderr.await(t, `:0 can be reached from other machines`)
	s.stdout.await(t, `listens on http://127\.0\.0\.1:\d+`)
}

func TestServeMaxBody(t *testing.T) {
	s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--max-body", "10")
	w := world{env: []string{"TARRY_SERVER=" + s.stdout.await(t, `listens on (http://\S+)\n`)[1]}}
	w.must(t, "push", "mail", "0123456789")
	run1(t, w, step{args: "push mail 01234567890", code: exitFailed, stderr: `tarry: push .*too large.*\n`})
}

// The binary as it is started by users: signals reach it, and the exit code is its.
func TestServeProcessDrainsOnSignal(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--store", "disk:"+filepath.Join(t.TempDir(), "data"), "--http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "TARRY_TEST_MAIN=1")
	stdout, stderr := newAwaited(), newAwaited()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := stdout.await(t, `listens on (http://\S+)\n`)[1]
	w := world{env: []string{"TARRY_SERVER=" + url}}
	w.must(t, "push", "mail", "x")
	started := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("it took %s to stop", took)
	}
	if ok, _ := regexp.MatchString(`(?m)^tarry: stopped serving; closing the store$`, stderr.String()); !ok {
		t.Errorf("stderr: %q", stderr)
	}
}
