package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestServeKeepsMessages(t *testing.T) {
	t.Chdir(t.TempDir())
	w, s := served(t, "disk:data")
	dir, err := filepath.Abs("data")
	if err != nil {
		t.Fatal(err)
	}
	if out := s.stdout.String(); !strings.Contains(out, "\ndata: "+dir+"\n") || strings.Count(out, "\n") != 6 {
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

func TestServeSuggestsCommandsThatWork(t *testing.T) {
	_, s := served(t, "mem:")
	lines := s.stdout.await(t, `try:\n  tarry (push .*)\n  tarry (work .*)\n`)
	push := strings.Fields(strings.ReplaceAll(lines[1], "'", ""))
	if out := (world{}).must(t, push...); !strings.HasPrefix(out, "created hello ") {
		t.Errorf("%s: %s", lines[1], out)
	}
	push[len(push)-3] = "0s" // --in 10s --server URL
	world{}.must(t, push...)
	worker := world{}.start(t, strings.Fields(lines[2])...)
	worker.stdout.await(t, `"hi"`)
	worker.stop(t)
}

func TestServePortInUse(t *testing.T) {
	w, _ := served(t, "mem:")
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	run1(t, w, step{args: "serve --store mem: --http " + strings.TrimPrefix(url, "http://"), code: exitFailed,
		stderr: `tarry: cannot listen on 127.0.0.1:\d+: the port is in use \(stop what .*--http 127.0.0.1:0\)\n`})
}

func TestServeDirectoryNotOurs(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("letter.txt", []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	run1(t, world{}, step{args: "serve --store disk:. --http 127.0.0.1:0", code: exitUsage, stderr: `tarry: .*\n`})
}

func TestServeSaysWhoCanReachIt(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		run1(t, world{}, step{args: "serve --store mem: --http " + address, code: exitUsage,
			stderr: `tarry: \S*:0 \(\S+\) can be reached from other machines, and there are no tokens \(.*tarry token create.*--insecure.*\)\n`})
	}
	s := world{}.start(t, "serve", "--store", "mem:", "--http", ":0", "--insecure")
	s.stderr.await(t, `:0 \(\S+\) can be reached from other machines`)
	s.stdout.await(t, `listens on http://127\.0\.0\.1:\d+`)
}

func TestServeMaxBody(t *testing.T) {
	s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--max-body", "10")
	w := world{env: []string{"TARRY_SERVER=" + s.stdout.await(t, `listens on (http://\S+)\n`)[1]}}
	w.must(t, "push", "mail", "0123456789")
	run1(t, w, step{args: "push mail 01234567890", code: exitFailed, stderr: `tarry: push .*too large.*\n`})

	// A larger limit than usual reaches commands and programs that set none of their own.
	s = world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--max-body", "4MiB")
	url := s.stdout.await(t, `listens on (http://\S+)\n`)[1]
	w = world{env: []string{"TARRY_SERVER=" + url}, stdin: strings.Repeat("x", 2<<20)}
	w.must(t, "push", "big", "-")
	c, err := openStore(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Push(t.Context(), "big", make([]byte, 4<<20)); err != nil || c.MaxBody() != 4<<20 {
		t.Errorf("a client takes bodies of %d bytes; the push of one of 4 MiB: %v", c.MaxBody(), err)
	}
}

// fetch gets what a server answers.
func fetch(t *testing.T, url string) (status int, body []byte, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// ask gets a path of a server under a host's name, and returns the status.
func ask(t *testing.T, url, host string, header ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestServeHosts(t *testing.T) {
	for name, args := range map[string][]string{
		"flags":       {"--http", "127.0.0.1:0", "--host", "tarry.example.com", "--host", "*.example.net"},
		"wildcard":    {"--http", ":0", "--insecure", "--host", "tarry.example.com,*.example.net"},
		"environment": {"--http", "localhost:0"},
		"file":        {"--http", "127.0.0.1:0", "--config", write(t, "c.json", `{"host": "tarry.example.com,*.example.net"}`)},
	} {
		w := world{}
		if name == "environment" {
			w.env = []string{"TARRY_HOST=tarry.example.com,*.example.net"}
		}
		s := w.start(t, append([]string{"serve", "--store", "mem:"}, args...)...)
		url := s.stdout.await(t, `listens on (http://\S+)\n`)[1] + "/v1/queues"
		for host, want := range map[string]int{
			"": 200, "localhost": 200, "tarry.example.com": 200, "a.example.net:80": 200, "example.net": 403, "evil.example": 403,
		} {
			if got := ask(t, url, host); got != want {
				t.Errorf("%s: host %q gets %d, want %d", name, host, got, want)
			}
		}
		if got := ask(t, url, "tarry.example.com", "Origin", "https://evil.example"); got != 403 {
			t.Errorf("%s: a foreign page gets %d", name, got)
		}
	}
}

func TestServeMaxConnections(t *testing.T) {
	s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--max-connections", "1")
	address := s.stdout.await(t, `listens on http://(\S+)\n`)[1]
	busy, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	// When this is asked to go on it is being served, and so not idle.
	fmt.Fprint(busy, "POST /v1/lease HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
	if line, err := bufio.NewReader(busy).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	run1(t, world{}, step{args: "queues --server http://" + address, code: exitUnavailable, stderr: `tarry: open: .*as many connections as it may.*--max-connections.*\n`})
}

func TestServeNameToListenOn(t *testing.T) {
	for http, want := range map[string][]string{
		":8277": {"a"}, "0.0.0.0:8277": {"a"}, "[::]:8277": {"a"}, "192.0.2.7:8277": {"a"}, "[::1]:0": {"a"}, "tarry.lan:80": {"a", "tarry.lan"},
	} {
		if got := (&serveFlags{http: http, hosts: []string{"a"}}).names(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", http, got, want)
		}
	}
}
