package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// engineRows are the rows of docs/metrics.md about figures of engines, which unlike others
// say what is measured.
func engineRows(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?m)^\\| `tarry_[^|]*\\|[^|]*\\|[^|]*\\|[^|]*\\|$").FindAllString(string(page), -1)
}

// storeRows are those of the section about a store.
func storeRows(t *testing.T, engine, section string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "\n"+section+"\n")
	if !ok {
		t.Fatalf("docs/metrics.md has no section %s", section)
	}
	rest, _, _ = strings.Cut(rest, "\n##")
	return regexp.MustCompile("(?m)^\\| `tarry_"+engine+"_[^|]*\\|[^|]*\\|[^|]*\\|[^|]*\\|$").FindAllString(rest, -1)
}

// documented fails the test unless the docs list all that the engine behind a server
// measures of itself, and nothing else.
func documented(t *testing.T, server, engine, section string) {
	t.Helper()
	_, body, err := fetch(t, server+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	for name, f := range families {
		if !strings.HasPrefix(name, "tarry_"+engine+"_") {
			continue
		}
		label := " "
		if labels := f.GetMetric()[0].GetLabel(); len(labels) > 0 {
			label = " " + labels[0].GetName() + " "
		}
		served = append(served, "| `"+name+"` | "+strings.ToLower(f.GetType().String())+" |"+label+"| "+f.GetHelp()+" |")
	}
	listed := storeRows(t, engine, section)
	slices.Sort(served)
	slices.Sort(listed)
	if len(served) == 0 || !slices.Equal(served, listed) {
		t.Errorf("docs/metrics.md lists\n%s\nserved is\n%s", strings.Join(listed, "\n"), strings.Join(served, "\n"))
	}
}

func TestFiguresInTheDocs(t *testing.T) {
	for _, row := range engineRows(t) {
		if !regexp.MustCompile("^\\| `tarry_(disk|redis|postgres|mysql|rabbit|remote)_").MatchString(row) {
			t.Errorf("no test looks whether this is so: %s", row)
		}
	}
	behind, _ := served(t, "mem:")
	remote, _ := behind.program(nil, nil).env("TARRY_SERVER")
	for section, is := range map[string]struct{ engine, store string }{
		"### Another server":    {"remote", remote},
		"### Disk":              {"disk", "disk:" + t.TempDir()},
		"### PostgreSQL":        {"postgres", pgtest.Shared(t) + "&migrate=true"},
		"### MySQL and MariaDB": {"mysql", mysqltest.Shared(t) + "?migrate=true"},
		"### RabbitMQ":          {"rabbit", rabbittest.Shared(t)},
	} {
		w, _ := served(t, is.store)
		url, _ := w.program(nil, nil).env("TARRY_SERVER")
		documented(t, url, is.engine, section)
	}
}
