package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
)

// damagedStore makes a store with a message that cannot be read, and returns its key and id.
func damagedStore(t *testing.T, dir string) (key string, id engine.ID) {
	t.Helper()
	e, err := diskengine.Open(dir, &diskengine.Config{MemoryBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const n = 40 // more than fit into the memory, so that there are runs
	ids := make(map[string]engine.ID)
	for i := range n {
		m := engine.Message{Queue: "mail", Key: fmt.Sprint("order-", i), Content: engine.Content{Body: make([]byte, 1<<20)}}
		_, _ = rand.Read(m.Body) // never fails
		r, err := e.Push(t.Context(), []engine.Message{m})
		if err == nil {
			err = r[0].Err
		}
		if err != nil {
			t.Fatal(err)
		}
		ids[m.Key] = r[0].ID
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	runs, err := filepath.Glob(filepath.Join(dir, "runs", "*.run"))
	if err != nil || len(runs) == 0 {
		t.Fatal(runs, err)
	}
	b, err := os.ReadFile(runs[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte("order-")) // of a message, not only of its body
	if at < 0 {
		t.Fatal("no run has the key")
	}
	b[at] ^= 1
	if err := os.WriteFile(runs[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err = diskengine.Open(dir, nil); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for i := range n {
		key := fmt.Sprint("order-", i)
		if _, err := e.Get(t.Context(), engine.Ref{Queue: "mail", Key: key}); err != nil {
			return key, ids[key]
		}
	}
	t.Fatal("all can be read")
	return "", 0
}

// A store that is damaged is not taken for one out of reach, by the command, over HTTP or by programs
// across it, and shows in what an operator looks at, with what to do.
func TestDamage(t *testing.T) {
	t.Chdir(t.TempDir())
	key, id := damagedStore(t, "data")
	get := step{args: "get mail " + key, code: exitFailed,
		stderr: fmt.Sprintf(`tarry: get mail key "%s": store is damaged: .*\.run, offset \d+: .* \(the message cannot be read: cancel it by its id alone, %s, .*tarry check \S*data --salvage.*\)\n`, key, id)}
	run1(t, world{env: []string{"TARRY_STORE=disk:data"}}, get)

	w, _ := served(t, "disk:data")
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	run1(t, w, get)
	resp, err := http.Get(url + "/v1/queues/mail/keys/" + key)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	var told struct{ Error struct{ Code, Hint string } }
	if err := json.Unmarshal(body, &told); err != nil || resp.StatusCode != 500 || told.Error.Code != "internal" || !strings.Contains(told.Error.Hint, "data --salvage") || resp.Header.Get("Retry-After") != "" {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
	c, err := tarry.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Get(t.Context(), tarry.ByKey(key).Of("mail")); !errors.Is(err, tarry.ErrDamaged) || errors.Is(err, tarry.ErrUnavailable) {
		t.Errorf("a look-up by a program: %v", err)
	}
	trouble := `a block of the store in \S*data is damaged, or the disk cannot read it: .*\n  the log of the process names the file; .*tarry check \S*data --salvage.*`
	run1(t, w, step{args: "status --late 24h", code: exitFailed, stdout: `tarry .*: ready\n! ` + trouble + `\n1 queue: .*`, stderr: `tarry: there is 1 problem .*\n`})
	if o := w.tarry(t, "top", "--json"); !strings.Contains(o.stdout, "a block of the store in ") {
		t.Errorf("top: %s%s", o.stdout, o.stderr)
	}
	if _, body, err := fetch(t, url+"/metrics"); err != nil || !regexp.MustCompile(`(?m)^tarry_disk_damaged_blocks 1$`).Match(body) {
		t.Errorf("the figure is not there: %v", err)
	}
	w.must(t, "cancel", "mail", "--id", id.String())
	run1(t, w, step{args: "get mail " + key, code: exitNotFound, stderr: `tarry: .*\n`})
}

// A store, or a backup, with which another process works is in use, not out of reach.
func TestInUse(t *testing.T) {
	t.Chdir(t.TempDir())
	served(t, "disk:data")
	for args, want := range map[string]string{
		"get mail k --store disk:data":               `tarry: open: \S*data is in use by pid \d+ .*\(one process at a time .*\)\n`,
		"serve --store disk:data --http 127.0.0.1:0": `tarry: open: \S*data is in use by pid \d+ .*\(one process at a time .*\)\n`,
		"check data":               `tarry: check: .*locked by another.* \(another process has data open: stop that first\)\n`,
		"check data --salvage new": `tarry: salvage: .*locked by another.* \(another process has data open: stop that first\)\n`,
	} {
		o := world{}.tarry(t, strings.Fields(args)...)
		if o.code != exitFailed || strings.Contains(o.stderr, "not reachable") || !regexp.MustCompile("^"+want+"$").MatchString(o.stderr) {
			t.Errorf("%s: %d %s", args, o.code, o.stderr)
		}
	}
}
