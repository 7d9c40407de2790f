package cli

import (
	"maps"
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

// engineRows are the rows of docs/metrics.md that list figures of engines, all of a type in one.
func engineRows(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, engines, _ := strings.Cut(string(page), "\n## Figures of the engines\n")
	return regexp.MustCompile(`(?m)^\| (?:histogram|counter|gauge)s \|.*$`).FindAllString(engines, -1)
}

// documented fails the test unless the docs list all that the engine behind a server
// measures of itself, and nothing else, and the server says of each what it is.
func documented(t *testing.T, server, engine string) {
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
	types := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if !strings.HasPrefix(name, "tarry_"+engine+"_") {
			continue
		}
		f := families[name]
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		item := "`" + name + "`"
		if labels := f.GetMetric()[0].GetLabel(); len(labels) > 0 {
			item += " (" + labels[0].GetName() + ")"
		}
		kind := strings.ToLower(f.GetType().String())
		types[kind] = append(types[kind], item)
	}
	var served []string
	for kind, items := range types {
		served = append(served, "| "+kind+"s | "+strings.Join(items, ", ")+" |")
	}
	listed := slices.DeleteFunc(engineRows(t), func(row string) bool { return !strings.Contains(row, "`tarry_"+engine+"_") })
	slices.Sort(served)
	slices.Sort(listed)
	if len(served) == 0 || !slices.Equal(served, listed) {
		t.Errorf("docs/metrics.md lists\n%s\nserved is\n%s", strings.Join(listed, "\n"), strings.Join(served, "\n"))
	}
}

func TestFiguresInTheDocs(t *testing.T) {
	for _, row := range engineRows(t) {
		for _, name := range regexp.MustCompile("`[^`]*`").FindAllString(row, -1) {
			if !regexp.MustCompile("^`tarry_(disk|redis|postgres|mysql|rabbit|remote)_").MatchString(name) {
				t.Errorf("no test looks whether this is so: %s", name)
			}
		}
	}
	behind, _ := served(t, "mem:")
	remote, _ := behind.program(nil, nil).env("TARRY_SERVER")
	for engine, store := range map[string]string{
		"remote":   remote,
		"disk":     "disk:" + t.TempDir(),
		"postgres": pgtest.Shared(t) + "&migrate=true",
		"mysql":    mysqltest.Shared(t) + "?migrate=true",
		"rabbit":   rabbittest.Shared(t),
	} {
		w, _ := served(t, store)
		url, _ := w.program(nil, nil).env("TARRY_SERVER")
		documented(t, url, engine)
	}
}
