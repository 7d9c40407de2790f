package tarryprom_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/tarryprom"
)

// The docs list what a server that has done everything tells, and nothing else.
func TestMetricsInTheDocs(t *testing.T) {
	m := tarryprom.New(nil)
	c := tarry.New(memengine.New(nil), &tarry.Config{Meter: m.Meter()})
	defer c.Close()
	m.Watch(c)
	m.WatchCertificate(time.Now)
	m.WatchBeanstalk(func() tarryprom.Beanstalk {
		return tarryprom.Beanstalk{Commands: map[string]uint64{"put": 1}}
	})
	m.WatchIntakes(func() []intake.Status { return []intake.Status{{Name: "i", Queue: "q"}} })
	m.WatchSchedules(func() int { return 1 })
	s := httptest.NewServer(server.New(c, &server.Config{Metrics: m.Handler(), Answered: m.Answered}))
	defer s.Close()
	ask := func(method, path, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 500 {
			t.Fatalf("%s %s: %s", method, path, resp.Status)
		}
	}
	ask("POST", "/v1/queues/q/messages", `{"expire_after":"1ms"}`)
	ask("POST", "/v1/queues/q/messages", `{"delay":"1h","key":"k"}`)
	ask("POST", "/v1/queues/q/keys/k/claim", `{}`)
	ask("DELETE", "/v1/queues/q/keys/l", "")
	time.Sleep(5 * time.Millisecond) // until the first has expired
	ask("POST", "/v1/lease", `{"queues":["q"]}`)
	ask("BREW", "/v1/coffee", "")
	ask("POST", "/v1/queues/w/messages", `{}`)
	w := tarry.NewWorker(c, nil)
	ctx, cancel := context.WithCancel(t.Context())
	tarry.Handle(w, tarry.NewTopic[[]byte]("w"), func(context.Context, *tarry.Message[[]byte]) error {
		cancel()
		return tarry.Bury(nil)
	})
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}

	m.Meter().Handled([]tarry.Event{{Kind: tarry.Stuck, Queue: "w", Count: 1}})

	resp, err := s.Client().Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	types := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if !strings.HasPrefix(name, "tarry_") {
			continue
		}
		f := families[name]
		labels := make(map[string]bool)
		for _, x := range f.GetMetric() {
			for _, l := range x.GetLabel() {
				labels[l.GetName()] = true
				if l.GetValue() == "BREW" {
					t.Errorf("%s: a client chooses the value of a label", name)
				}
			}
		}
		item := "`" + name + "`"
		if len(labels) > 0 {
			item += " (" + strings.Join(slices.Sorted(maps.Keys(labels)), ", ") + ")"
		}
		kind := strings.ToLower(f.GetType().String())
		types[kind] = append(types[kind], item)
	}
	var served []string
	for kind, items := range types {
		served = append(served, "| "+kind+"s | "+strings.Join(items, ", ")+" |")
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	// What follows is of engines: internal/cli looks at it.
	own, _, _ := strings.Cut(string(page), "\n## Figures of the engines\n")
	listed := regexp.MustCompile(`(?m)^\| (?:histogram|counter|gauge)s \|.*$`).FindAllString(own, -1)
	slices.Sort(served)
	slices.Sort(listed)
	if !slices.Equal(served, listed) {
		t.Errorf("docs/metrics.md lists\n%s\nserved is\n%s", strings.Join(listed, "\n"), strings.Join(served, "\n"))
	}
}
