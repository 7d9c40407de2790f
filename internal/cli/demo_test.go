package cli

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// As a visitor sees it: a process that shows where the dashboard is and what happens, until
// it is interrupted.
func TestDemo(t *testing.T) {
	cmd := exec.Command(os.Args[0], "demo", "--http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "TARRY_TEST_MAIN=1")
	cmd.Dir = t.TempDir()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	giveUp := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer giveUp.Stop()
	lines := bufio.NewScanner(stdout)
	var seen strings.Builder
	await := func(text string) string {
		t.Helper()
		for lines.Scan() {
			seen.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), text) {
				return lines.Text()
			}
		}
		t.Fatalf("%q is not printed, but this:\n%s%s", text, &seen, &stderr)
		return ""
	}
	url := strings.TrimPrefix(await("dashboard: "), "dashboard: ")
	await("360 times faster than real life: 30 minutes take 5s, 48 hours 8m")
	await("Ctrl-C ends it and leaves nothing behind")
	for _, what := range []string{"made", "paid in time", "five stars"} {
		await(what)
	}
	if status, body, err := fetch(t, url); err != nil || status != 200 || !strings.Contains(string(body), "<title>tarry</title>") {
		t.Errorf("%d %s %v", status, body, err)
	}
	_, body, err := fetch(t, url+"v1/queues")
	for _, queue := range []string{"order.unpaid", "ride.rate", "merchant.notify", "mail.digest"} {
		if err != nil || !strings.Contains(string(body), `"`+queue+`"`) {
			t.Errorf("%s is not among the queues: %s %v", queue, body, err)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // what it prints until then
	}
	if err := cmd.Wait(); err != nil || stderr.String() != "tarry: stopped serving, and closed the store\n" {
		t.Errorf("it ends with %v: %s", err, &stderr)
	}
	if left, err := os.ReadDir(cmd.Dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v %v", left, err)
	}
}

func TestDemoUsage(t *testing.T) {
	config := write(t, "c.json", `{"routes": [{"queue": "order.unpaid", "to": "nowhere:"}]}`)
	s := world{}.start(t, "demo", "--http", "127.0.0.1:0", "--speed", "1", "--config", config) // whose routes are for other messages
	url := s.stdout.await(t, `dashboard: http://(\S+)/\n`)[1]
	s.stdout.await(t, `30 minutes take 30m, 48 hours 48h\.\n.*one order in 1,`)
	run1(t, world{}, step{args: "demo --http " + url, code: exitFailed, stderr: `tarry: cannot listen on 127.0.0.1:\d+: the port is in use \(stop what .*--http 127.0.0.1:0\)\n`})
	run1(t, world{}, step{args: "demo --speed 0", code: exitUsage, stderr: `tarry: --speed is 0 \(allowed are 1 to 3600\)\n`})
	run1(t, world{}, step{args: "demo --addr :80", code: exitUsage, stderr: `tarry: unknown flag: --addr \(did you mean --http\? .*\n`})
	run1(t, world{}, step{args: "demo shop", code: exitUsage, stderr: `tarry: too many arguments.*\n`})
	if code := s.stop(t); code != exitOK {
		t.Errorf("it ends with %d: %s", code, s.stderr)
	}
}
