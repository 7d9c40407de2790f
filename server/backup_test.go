package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/server/access"
)

// Who is admin of all queues makes backups, below the directory of the server and nowhere else; each
// leaves a line.
func TestBackup(t *testing.T) {
	g := newGuarded(t)
	dir := t.TempDir()
	e, err := diskengine.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := tarry.New(e, nil)
	defer c.Close()
	g.Server.c, g.Server.cfg.BackupDir = c, filepath.Join(dir, "copies")
	root := g.create("root", access.Admin, []string{"*"}, time.Time{})
	if w := g.ask(root, "POST", "/v1/backup", `{"name":"a"}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"name":"a","taken":"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(g.audit.String(), `"what":"backup","who":"root"`) || !strings.Contains(g.audit.String(), `"name":"a"`) {
		t.Errorf("the audit log: %s", g.audit.String())
	}
	for _, name := range []string{"", ".", "..", ".a", "a/b", "/a", `a\\b`, "a b", "ä", strings.Repeat("a", 101)} {
		if w := g.ask(root, "POST", "/v1/backup", `{"name":"`+name+`"}`); w.Code != 400 {
			t.Errorf("%q: %d %s", name, w.Code, w.Body)
		}
	}
	for who, secret := range map[string]string{
		"an operator":       g.create("ann", access.Operate, []string{"*"}, time.Time{}),
		"admin of a queue":  g.create("bob", access.Admin, []string{"q"}, time.Time{}),
		"one with the rest": g.create("cat", access.Push|access.Work|access.Read|access.Operate, []string{"*"}, time.Time{}),
	} {
		if w := g.ask(secret, "POST", "/v1/backup", `{"name":"b"}`); w.Code != 403 {
			t.Errorf("%s: %d %s", who, w.Code, w.Body)
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*", "BACKUP"))
	if err != nil || !slices.Equal(names, []string{filepath.Join(dir, "copies", "a", "BACKUP")}) {
		t.Errorf("made %v, %v", names, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "copies", "taken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if w := g.ask(root, "POST", "/v1/backup", `{"name":"taken"}`); w.Code == 200 || w.Code == 500 {
		t.Errorf("a file in its place: %d %s", w.Code, w.Body)
	}
	g.Server.cfg.BackupDir = ""
	if w := g.ask(root, "POST", "/v1/backup", `{"name":"a"}`); w.Code != 501 || !strings.Contains(w.Body.String(), "--backup-dir") {
		t.Errorf("without a directory: %d %s", w.Code, w.Body)
	}
}
