package cli

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listener is somebody to hand messages on to.
type listener struct {
	url  string
	got  chan string // queue and body of each
	http http.Header // of the last
}

// listen answers each request with a status.
func listen(t *testing.T, status int) *listener {
	t.Helper()
	l := &listener{got: make(chan string, 100)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.http = r.Header
		w.WriteHeader(status)
		fmt.Fprint(w, "so it is")
		l.got <- r.Header.Get("Tarry-Queue") + " " + string(body)
	}))
	t.Cleanup(srv.Close)
	l.url = srv.URL
	return l
}

func (l *listener) next(t *testing.T) string {
	t.Helper()
	select {
	case got := <-l.got:
		return got
	case <-time.After(patience):
		t.Fatal("nothing was handed on")
		return ""
	}
}

func (l *listener) gets(t *testing.T, want string) {
	t.Helper()
	if got := l.next(t); got != want {
		t.Errorf("handed on was %q, want %q", got, want)
	}
}

// route is a route as it stands in a file.
func route(queue, target, more string) string {
	return fmt.Sprintf(`{"queue": %q, "target": %q, "allow_private": true%s}`, queue, target, more)
}

func routesFile(routes ...string) string {
	return "{\"routes\": [\n" + strings.Join(routes, ",\n") + "\n]}\n"
}

func TestServeHandsOn(t *testing.T) {
	exact, wide := listen(t, 200), listen(t, 204)
	secret := write(t, "secret", "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 24))+"\n")
	config := write(t, "c.json", routesFile(
		route("order.*", wide.url, `, "concurrency": 4, "rate": 1000, "burst": 5, "timeout": "5s"`),
		route("order.paid", exact.url, `, "name": "shop", "secret_file": "`+secret+`", "headers": {"Team": "a"}`)))
	s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--config", config)
	w := world{env: []string{"TARRY_SERVER=" + s.stdout.await(t, `listens on (http://\S+)\n`)[1]}}
	s.stdout.await(t, `forwarding by 2 routes of \S+c.json\n`)
	w.must(t, "push", "order.paid", "1", "--in", "10ms")
	exact.gets(t, "order.paid 1")
	if h := exact.http; h.Get("Team") != "a" || h.Get("Webhook-Signature") == "" {
		t.Errorf("it came with %v", h)
	}
	w.must(t, "push", "order.late", "2")
	wide.gets(t, "order.late 2")
	if code := s.stop(t); code != exitOK {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
}

func TestServeWithWrongRoutes(t *testing.T) {
	good := route("first", "https://shop.example/", "")
	empty, two := write(t, "empty", "\n"), write(t, "two", "https://a.example\nhttps://b.example\n")
	open := filepath.Join(t.TempDir(), "open")
	writeMode(t, open, "whsec_x\n", 0o644)
	for routes, want := range map[string]string{
		`{"routes": {}}`:                   `routes is not an array of routes \(as in .*\)`,
		`{"routes": null}`:                 `routes is not an array of routes \(as in .*\)`,
		`{"routes": [null]}`:               `route 1: it is null`,
		`{"routes": ["x"]}`:                `route 1: it is a JSON string and not an object .*`,
		routesFile(good, `{}`):             `route 2: it has no queue .*`,
		routesFile(good, `{"queue": "q"}`): `route 2 \(q\): it has neither target nor target_file .*`,
		routesFile(good, `{"name": "n", "queue": "q", "target": "https://a.example", "target_file": "x"}`): `route 2 \(n\): both target and target_file .*`,
		routesFile(`{"queue": "q", "quue": "p"}`):                                                          `route 1 \(q\): unknown field "quue" \(known are name, .*\)`,
		routesFile(`{"queue": "q", "queue": "p"}`):                                                         `line 2: duplicate object member name at /routes/0/queue .*`,
		routesFile(`{"queue": 7}`):                                                                         `route 1: queue cannot be a JSON number`,
		routesFile(`{"queue": "q", "concurrency": "many"}`):                                                `route 1 \(q\): concurrency cannot be a JSON string`,
		routesFile(`{"queue": "q", "headers": {"a": 7}}`):                                                  `route 1 \(q\): headers.a cannot be a JSON number`,
		routesFile(`{"queue": "q", "timeout": "soon"}`):                                                    `route 1 \(q\): timeout: "soon" is not a duration.*`,
		routesFile(route("q", "https://a.example", `, "timeout": "0s"`)):                                   `route 1 \(q\): the timeout is 0 .*`,
		routesFile(route("q", "https://a.example", `, "rate": 0`)):                                         `route 1 \(q\): the rate is 0 .*`,
		routesFile(route("q", "https://a.example", `, "rate": -1`)):                                        `route 1 \(q\): invalid \(the rate is -1 .*\)`,
		routesFile(route("q", "https://a.example", `, "concurrency": 0`)):                                  `route 1 \(q\): the concurrency is 0; .*`,
		routesFile(route("q", "https://a.example", `, "concurrency": 1001`)):                               `route 1 \(q\): invalid \(the concurrency is 1001; .*\)`,
		routesFile(route("q", "https://a.example", `, "burst": 0`)):                                        `route 1 \(q\): the burst is 0; .*`,
		routesFile(route("q!*", "https://a.example", "")):                                                  `route 1 \(q!\*\): invalid \(byte 2 of the queue's name .*\)`,
		routesFile(good, route("first", "https://b.example", "")):                                          `route 2 \(first\): invalid \(route 1 has this queue already; .*\)`,
		routesFile(route("q", "gopher://u:geheim@h", "")):                                                  `route 1 \(q\): invalid \(no target has the scheme "gopher"; known here: .*\)`,
		routesFile(`{"queue": "q", "target_file": "/no/such"}`):                                            `route 1 \(q\): target_file: open /no/such: .*`,
		routesFile(`{"queue": "q", "target_file": "` + empty + `"}`):                                       `route 1 \(q\): target_file: the file \S+ is empty`,
		routesFile(`{"queue": "q", "target_file": "` + two + `"}`):                                         `route 1 \(q\): target_file: \S+ holds 2 lines .*`,
		routesFile(`{"queue": "q", "target_file": "` + open + `"}`):                                        `route 1 \(q\): target_file: others may read or write \S+, its mode is 0644 .*`,
		routesFile(route("q", "https://a.example", `, "secret_file": "`+open+`"`)):                         `route 1 \(q\): secret_file: others may read or write \S+, its mode is 0644 .*`,
		routesFile(route("q", "https://a.example", `, "secret_file": "/no/such"`)):                         `route 1 \(q\): secret_file: open /no/such: .*`,
		routesFile(route("q", "https://a.example", `, "secret_file": "`+two+`"`)):                          `route 1 \(q\): invalid \(.*\)`,
		routesFile(route("q", "https://a.example", `, "headers": {"Tarry-Id": "7"}`)):                      `route 1 \(q\): invalid \(the header Tarry-Id is tarry's own; .*\)`,
	} {
		config := write(t, "c.json", routes)
		for _, command := range []string{"serve --store mem: --http 127.0.0.1:0", "route ls", "route test q"} {
			s := step{args: command + " --config " + config, code: exitUsage, stderr: `tarry: \S+c\.json: ` + want + `\n`}
			run1(t, world{}, s)
		}
		if o := (world{}).tarry(t, "route", "ls", "--config", config); strings.Contains(o.stderr, "geheim") || strings.Contains(o.stderr, "b.example") {
			t.Errorf("a secret is told: %s", o.stderr)
		}
	}
}

func TestRouteList(t *testing.T) {
	target := write(t, "target", "https://u:geheim@hooks.example/T0/geheim?k=geheim\n")
	config := write(t, "c.json", routesFile(
		`{"queue": "order.*", "target": "https://ann:geheim@shop.example/due", "headers": {"X-Token": "geheim"}, "rate": 0.5}`,
		`{"name": "hook", "queue": "ride", "target_file": "`+target+`", "concurrency": 2, "timeout": "1m"}`))
	run1(t, world{}, step{args: "route ls --config " + config, stdout: `NAME  QUEUE  TARGET  CONCURRENCY  RATE  TIMEOUT
order\.\*  order\.\*  https://ann:xxxxx@shop\.example/due  16  0\.5  10s
hook  ride  https://hooks\.example/…  2  -  1m
`})
	run1(t, world{}, step{args: "route ls --json --config " + config, stdout: `{"name":"order\.\*","queue":"order\.\*","target":"https://ann:xxxxx@shop\.example/due","concurrency":16,"rate":0\.5,"burst":1,"timeout":"10s","headers":\["X-Token"\]}
{"name":"hook","queue":"ride","target":"https://hooks\.example/…","concurrency":2,"timeout":"1m"}
`})
	run1(t, world{}, step{args: "route ls --config " + write(t, "none.json", `{}`), stdout: `NAME .*TIMEOUT\n`})
	run1(t, world{}, step{args: "route ls", code: exitUsage, stderr: `tarry: no --config file is given, .*\n`})
	run1(t, world{}, step{args: "route", code: exitUsage, stderr: `tarry: tarry route is missing what to do .*\n`})
}

func TestShownTarget(t *testing.T) {
	for _, c := range []struct {
		url, want string
		ofFile    bool
	}{
		{"https://h/p?q=1", "https://h/p?q=1", false},
		{"https://token@h/p", "https://xxxxx@h/p", false},
		{"amqp://u:geheim@h:1/v?key=k", "amqp://u:xxxxx@h:1/v?key=k", false},
		{"kafka://u:geheim@a:1,b:2/t", "kafka://a:1,b:2/…", true},
	} {
		if got := shownTarget(c.url, c.ofFile); got != c.want {
			t.Errorf("%s is shown as %s, want %s", c.url, got, c.want)
		}
	}
}

func TestRouteTest(t *testing.T) {
	l, gone := listen(t, 200), listen(t, 410)
	config := write(t, "c.json", routesFile(route("order.*", l.url, `, "name": "shop"`), route("gone", gone.url, ""),
		route("down", "http://127.0.0.1:1", "")))
	for args, want := range map[string]string{
		"shop":          `order.test {"test":"of a route of tarry"}`,
		"order.*":       `order.test {"test":"of a route of tarry"}`,
		"order.paid":    `order.paid {"test":"of a route of tarry"}`,
		"order.paid hi": `order.paid hi`,
		"order.paid -":  `order.paid from stdin`,
	} {
		run1(t, world{}, step{args: "route test --config " + config + " " + args, stdin: "from stdin",
			stdout: `http://127.0.0.1:\d+ took the message of order\.(test|paid) AWAY.*\n`})
		l.gets(t, want)
	}
	if l.http.Get("Tarry-Attempt") != "1" {
		t.Errorf("it came with %v", l.http)
	}
	run1(t, world{}, step{args: "route test shop --json --config " + config,
		stdout: `{"outcome":"taken","queue":"order.test","route":"shop","target":"http://127.0.0.1:\d+","took":"\S+"}\n`})
	run1(t, world{}, step{args: "route test gone --config " + config, code: exitFailed,
		stderr: `tarry: http://127.0.0.1:\d+ did not take the message, after \S+: bury: .*410 Gone.*so it is.*\n`})
	run1(t, world{}, step{args: "route test gone --json --config " + config, code: exitFailed,
		stdout: `{"error":".*410 Gone.*","outcome":"failed",.*}\n`, stderr: `tarry: .*\n`})
	run1(t, world{}, step{args: "route test down --config " + config, code: exitFailed, stderr: `tarry: .*did not take the message.*refused.*\n`})
	run1(t, world{}, step{args: "route test ride --config " + config, code: exitNotFound, stderr: `tarry: route test ride: not found \(.*tarry route ls.*\)\n`})
	run1(t, world{}, step{args: "route test --config " + config, code: exitUsage, stderr: `tarry: NAME\|QUEUE is missing .*\n`})
}

// serveProcess is tarry serve as its users start it, with a --config file.
func serveProcess(t *testing.T, config string, env []string, args ...string) (cmd *exec.Cmd, w world, stderr *awaited) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGHUP")
	}
	args = append([]string{"serve", "--store", "disk:" + filepath.Join(t.TempDir(), "data"), "--http", "127.0.0.1:0", "--config", config}, args...)
	cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), "TARRY_TEST_MAIN=1"), env...)
	stdout, stderr := newAwaited(), newAwaited()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := stdout.await(t, `listens on (http://\S+)\n`)[1]
	return cmd, world{env: []string{"TARRY_SERVER=" + url}}, stderr
}

func signalTo(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func TestServeProcessReadsRoutesAgainOnHangup(t *testing.T) {
	a, b := listen(t, 200), listen(t, 200)
	config := write(t, "c.json", `{}`)
	cmd, w, stderr := serveProcess(t, config, nil)
	reload := func(content, says string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		signalTo(t, cmd, syscall.SIGHUP)
		stderr.await(t, says)
	}
	w.must(t, "push", "order.1", "early") // waits for its route
	reload(routesFile(route("order.*", a.url, "")), `c.json was read again: 1 route\n`)
	a.gets(t, "order.1 early")
	w.must(t, "push", "order.2", "new queue")
	a.gets(t, "order.2 new queue")
	reload(routesFile(route("order.*", b.url, ""), route("ride", "gopher:", "")), `tarry: \S+c.json: route 2 \(ride\): .*; the routes and intakes stay as they were\n`)
	reload(`{"routes": [`, `tarry: \S+c.json: line 1: it ends too early .*; the routes and intakes stay as they were\n`)
	w.must(t, "push", "order.1", "still")
	a.gets(t, "order.1 still")
	reload(routesFile(route("order.*", b.url, ""), route("ride", a.url, "")), `c.json was read again: 2 routes\n`)
	w.must(t, "push", "ride", "r")
	a.gets(t, "ride r")
	w.must(t, "push", "order.1", "moved")
	b.gets(t, "order.1 moved")
	signalTo(t, cmd, os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
}

// A wish that nobody listens for ends a process, also while it begins and while it ends.
func TestServeHearsWishesFromBeginningToEnd(t *testing.T) {
	wishes := make(chan os.Signal, 1)
	wishes <- syscall.SIGHUP
	stdout, stderr := newAwaited(), newAwaited()
	config := write(t, "c.json", `{}`)
	p := world{}.program(stdout, stderr, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--config", config)
	p.Reloads = func() (<-chan os.Signal, func()) {
		if stdout.String() != "" {
			t.Errorf("the first wishes are not heard; it has begun: %s", stdout)
		}
		return wishes, func() {
			if !strings.Contains(stderr.String(), "closed the store") {
				t.Errorf("the last wishes are not heard; it has not ended: %s", stderr)
			}
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	exited := make(chan int)
	go func() { exited <- p.Run(ctx) }()
	stderr.await(t, `c.json was read again: 0 routes\n`)
	interrupt()
	if code := <-exited; code != exitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// A target that takes the connection and never answers.
func TestServeProcessEndsWithinDrain(t *testing.T) {
	came, let := make(chan struct{}, 10), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		came <- struct{}{}
		<-let
	}))
	defer srv.Close()
	defer close(let)
	config := write(t, "c.json", routesFile(route("order.*", srv.URL, `, "timeout": "10m"`)))
	cmd, w, stderr := serveProcess(t, config, nil, "--drain", "300ms")
	w.must(t, "push", "order.1", "x", "--key", "k")
	<-came
	signalTo(t, cmd, os.Interrupt)
	err := cmd.Wait()
	var exit *exec.ExitError
	if err == nil || !asExit(err, &exit) || exit.ExitCode() != exitFailed {
		t.Errorf("%v: %s", err, stderr)
	}
	if ok, _ := regexp.MatchString(`(?m)^tarry: stopped serving, and closed the store\ntarry: .*being forwarded.*--drain\)$`, stderr.String()); !ok {
		t.Errorf("stderr: %q", stderr)
	}
	store := "disk:" + strings.TrimPrefix(cmd.Args[3], "disk:")
	if m := object(t, world{}.must(t, "get", "order.1", "k", "--store", store, "--json")); m["state"] != "ready" || m["attempt"] != 0.0 {
		t.Errorf("the message is left as %v", m)
	}
}

func asExit(err error, exit **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*exit = e
	return ok
}
