package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
	"github.com/tarryhq/tarry/internal/leaktest"
)

// programEnv makes the test binary the program itself.
const programEnv = "TARRY_CHECKOUT_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	leaktest.Main(pgtest.Main(m))
}

// program is a process that runs the program.
type program struct {
	cmd  *exec.Cmd
	addr string
	http *http.Client
}

func start(t *testing.T, url, within string) *program {
	t.Helper()
	p := &program{cmd: exec.CommandContext(t.Context(), os.Args[0], "--db", url, "--listen", "127.0.0.1:0", "--within", within)}
	p.cmd.Env = append(os.Environ(), programEnv+"=1")
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatalf("the program ended: %v", p.cmd.Wait())
	}
	p.addr = strings.TrimPrefix(lines.Text(), "listening on ")
	p.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	go func() {
		for lines.Scan() { // lest it wait for somebody to read
		}
	}()
	return p
}

// kill kills it, as kill -9 does.
func (p *program) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = p.cmd.Wait() // it was killed
	p.http.CloseIdleConnections()
}

// post returns the status that it answers; 0: it does not.
func (p *program) post(path string) int {
	r, err := p.http.Post("http://"+p.addr+path, "", nil)
	if err != nil {
		return 0
	}
	_ = r.Body.Close() // it has been answered
	return r.StatusCode
}

// is waits until an order has come to a state.
func (p *program) is(t *testing.T, id, want string) {
	t.Helper()
	for giveUp := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r, err := p.http.Get("http://" + p.addr + "/orders/" + id)
		if err != nil {
			t.Fatal(err)
		}
		var state string
		_, err = fmt.Fscanln(r.Body, &state)
		_ = r.Body.Close() // that was all
		if state == want {
			return
		}
		if time.Now().After(giveUp) {
			t.Fatalf("order %s is %q, %v, not %s", id, state, err, want)
		}
	}
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t)
	patient, hasty := start(t, url, "1h"), start(t, url, "20ms")
	defer patient.kill(t)
	defer hasty.kill(t)
	answers := func(path string, want int) {
		t.Helper()
		if got := patient.post(path); got != want {
			t.Errorf("POST %s is answered %d, not %d", path, got, want)
		}
	}
	answers("/orders/paid", http.StatusCreated)
	answers("/orders/paid", http.StatusConflict)
	patient.is(t, "paid", "open")
	answers("/orders/paid/payment", http.StatusNoContent)
	answers("/orders/paid/payment", http.StatusConflict)
	patient.is(t, "paid", "paid")
	answers("/orders/nobody/payment", http.StatusConflict)
	answers("/orders/"+strings.Repeat("x", 600), http.StatusBadRequest) // that is no key, and so no order
	if got := hasty.post("/orders/unpaid"); got != http.StatusCreated {
		t.Errorf("an order is answered %d", got)
	}
	patient.is(t, "unpaid", "cancelled")
	answers("/orders/unpaid/payment", http.StatusConflict)
	patient.is(t, "paid", "paid")
	left := read(t, url)
	if len(left) != 2 || left["paid"] != (entry{order: true, paid: true}) || left["unpaid"] != (entry{order: true, cancelled: true}) {
		t.Errorf("left is %+v", left)
	}
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--db", "postgres://h/d", "more"}, {"--db", "postgres://h/d", "--within", "0s"}, {"--nonsense"}} {
		var stderr strings.Builder
		if code := run(t.Context(), args, &stderr, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%v: exit code %d, %s", args, code, &stderr)
		}
	}
	for _, url := range []string{"redis://127.0.0.1:1", "postgres://postgres@127.0.0.1:1/postgres"} {
		var stderr strings.Builder
		if code := run(t.Context(), []string{"--db", url}, &stderr, &stderr); code != 1 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", url, code, &stderr)
		}
	}
}
