package cli

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/internal/cli/bench"
	"github.com/tarryhq/tarry/internal/nettest"
)

// benchFields are relied on from outside.
var benchFields = strings.Fields(`scenario store n clients batch body_bytes seconds ops_per_s p50_ms p99_ms p999_ms max_ms
	early lost duplicates rss_bytes disk_bytes`)

func TestBenchOnDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	out := world{}.must(t, "bench", "--store", "disk:"+dir, "--scenario", "all", "--n", "500", "--clients", "8",
		"--rate", "2000", "--background-pending", "300", "--background-rate", "500", "--json", "--quiet")
	var ran []string
	for line := range strings.Lines(out) {
		r := object(t, line)
		ran = append(ran, r["scenario"].(string))
		for _, f := range benchFields {
			if _, ok := r[f]; !ok {
				t.Errorf("%s: the field %s is missing", r["scenario"], f)
			}
		}
		if r["n"] != 500.0 || r["early"] != 0.0 || r["lost"] != 0.0 || r["duplicates"] != 0.0 {
			t.Errorf("%s", line)
		}
		if r["seconds"].(float64) <= 0 || r["disk_bytes"].(float64) <= 0 || r["body_bytes"] != 200.0 {
			t.Errorf("%s", line)
		}
		if r["scenario"] == "recover" && (r["counted"] != 500.0 || r["checked"] != 500.0) {
			t.Errorf("%s", line)
		}
	}
	want := slices.DeleteFunc(slices.Clone(bench.Scenarios), func(s string) bool { return s == "push-raw" })
	if !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the store is still there: %v", err)
	}
}

func TestBenchOverHTTPLeavesNothing(t *testing.T) {
	t.Parallel()
	w, _ := served(t, "mem:")
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	o := w.tarry(t, "bench", "--store", url, "--scenario", "all", "--n", "300", "--clients", "8", "--rate", "2000", "--body", "10")
	if o.code != exitOK {
		t.Fatalf("exit code %d: %s", o.code, o.stderr)
	}
	for _, s := range bench.Scenarios {
		if has := strings.Contains(o.stdout, "\n"+s+" "); has == (s == "recover") {
			t.Errorf("%s in the table: %v\n%s", s, has, o.stdout)
		}
	}
	if !strings.Contains(o.stderr, "recover was left out") {
		t.Errorf("stderr: %s", o.stderr)
	}
	if left := w.must(t, "queues", "--json"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// A server with TLS and tokens is measured with the same flags as it is used, and what is
// printed tells no token.
func TestBenchOfAGuardedServer(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	file := newToken(t, tokens, "bench", "push,work,read,operate", "bench.*")
	secret, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(secret))
	_, cert, key := nettest.Certificate(t)
	s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--tokens", tokens, "--tls-cert", cert, "--tls-key", key)
	server := s.stdout.await(t, `listens on (https://\S+)\n`)[1]
	trusted := server + "?" + url.Values{"ca_file": {cert}}.Encode()
	run := func(w world, args ...string) outcome {
		return w.tarry(t, append([]string{"bench", "--scenario", "push,push-raw", "--n", "20", "--clients", "2", "--json"}, args...)...)
	}
	for name, o := range map[string]outcome{
		"file flag":   run(world{}, "--store", trusted, "--token-file", file),
		"environment": run(world{env: []string{"TARRY_TOKEN=" + token}}, "--store", trusted),
		"option":      run(world{}, "--store", trusted+"&"+url.Values{"token_file": {file}}.Encode()),
		"user":        run(world{}, "--store", strings.Replace(trusted, "//", "//"+token+"@", 1)),
	} {
		if o.code != exitOK || strings.Count(o.stdout, `"n":20`) != 2 {
			t.Errorf("%s: exit code %d: %s%s", name, o.code, o.stdout, o.stderr)
		}
		if strings.Contains(o.stdout+o.stderr, token) {
			t.Errorf("%s: the token is told: %s%s", name, o.stdout, o.stderr)
		}
	}
	for name, c := range map[string]struct {
		o    outcome
		code int
		says string
	}{
		"no token":    {run(world{}, "--store", trusted), exitFailed, "a token is needed"},
		"on the line": {run(world{}, "--store", trusted, "--token", token), exitUsage, "a token on the command line can be read by others"},
		"not trusted": {run(world{}, "--store", server, "--token-file", file), exitUnavailable, "certificate signed by unknown authority"},
		"no file":     {run(world{}, "--store", trusted, "--token-file", "/nowhere"), exitUsage, "--token-file: "},
	} {
		if c.o.code != c.code || !strings.Contains(c.o.stderr, c.says) {
			t.Errorf("%s: exit code %d: %s", name, c.o.code, c.o.stderr)
		}
	}
}

func TestBenchRawPushesNeedAServer(t *testing.T) {
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{"mem:", "disk:" + used, "disk:" + filepath.Join(used, "new")} {
		run1(t, world{}, step{args: "bench --quiet --n 10 --scenario push-raw --store " + store, code: exitUsage, stderr: `tarry: push-raw needs a server.*\n`})
	}
	if _, err := os.Stat(filepath.Join(used, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
}

func TestBenchRefusesADirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	letter := filepath.Join(dir, "letter.txt")
	if err := os.WriteFile(letter, []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	run1(t, world{}, step{args: "bench --quiet --n 10 --store disk:" + dir, code: exitUsage, stderr: `tarry: the directory of the store is not empty: .*\n`})
	if _, err := os.Stat(letter); err != nil {
		t.Error(err)
	}
}

func TestBenchKeep(t *testing.T) {
	store := "disk:" + filepath.Join(t.TempDir(), "store")
	for range 2 {
		world{}.must(t, "bench", "--store", store, "--scenario", "push", "--n", "20", "--keep", "--quiet")
	}
	if n := strings.Count(world{}.must(t, "queues", "--store", store, "--json"), `"scheduled":20`); n != 2 {
		t.Errorf("%d queues were kept", n)
	}
}

func TestBenchStopsOnInterrupt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	r := world{}.start(t, "bench", "--store", "disk:"+dir, "--scenario", "lateness", "--rate", "1", "--n", "1000")
	r.stderr.await(t, "lateness: handled")
	if code := r.stop(t); code != exitFailed || !strings.HasSuffix(r.stderr.String(), "tarry: interrupted\n") {
		t.Errorf("exit code %d: %s", code, r.stderr)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the store is still there: %v", err)
	}
}
