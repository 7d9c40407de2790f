package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/internal/nettest"
)

// child is a process that a test has started and ends.
type child struct {
	out *awaited
	end func()
}

func startChild(t *testing.T, env []string, name string, args ...string) child {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, name, args...)
	c := child{out: newAwaited()}
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = append(os.Environ(), env...), c.out, c.out, t.TempDir()
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	c.end = func() {
		cancel()
		<-ended
	}
	t.Cleanup(c.end)
	return c
}

// tarryProcess starts a tarry of its own.
func tarryProcess(t *testing.T, address string) (c child, base string) {
	t.Helper()
	c = startChild(t, []string{"TARRY_TEST_MAIN=1"}, os.Args[0], "serve", "--store", "disk:data", "--http", address)
	return c, c.out.await(t, `listens on (http://\S+)\n`)[1]
}

// testSized has rules fire and resolve within seconds.
var testSized = strings.NewReplacer("for: 1m\n", "for: 300ms\n", "[5m]", "[3s]", "[15m]", "[3s]", "offset 5m", "offset 3s", "offset 15m", "offset 3s")

// prometheus starts one that scrapes a tarry and evaluates the rules.
func prometheus(t *testing.T, target string) string {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 200ms, evaluation_interval: 200ms}\nrule_files: [alerts.yml]\nscrape_configs: [{job_name: tarry, static_configs: [{targets: [%q]}]}]\n",
		strings.TrimPrefix(target, "http://"))
	for name, text := range map[string]string{"prometheus.yml": config, "alerts.yml": testSized.Replace(readOperations(t, "alerts.yml"))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := startChild(t, []string{"GOMAXPROCS=1"}, installed(t, "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	address := c.out.await(t, `msg="Listening on" address=(\S+)`)[1]
	c.out.await(t, `ready to receive web requests`)
	return "http://" + address
}

// asked gets a JSON answer.
func asked(t *testing.T, from string, into any) error {
	t.Helper()
	status, body, err := fetch(t, from)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s answers %d", from, status)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// awaits asks until it is answered with nil.
func awaits(t *testing.T, what string, ask func() error) {
	t.Helper()
	for giveUp := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(giveUp) {
			t.Fatalf("waited %s in vain for %s: %v", patience, what, err)
		}
	}
}

// alerting waits until an alert fires, or does no more.
func alerting(t *testing.T, prom, alert string, want bool) {
	t.Helper()
	alertingWhile(t, prom, alert, want, func() {})
}

// alertingWhile is alerting while something is done again and again.
func alertingWhile(t *testing.T, prom, alert string, want bool, do func()) {
	t.Helper()
	awaits(t, fmt.Sprintf("%s to fire: %v", alert, want), func() error {
		do()
		var a struct {
			Data struct {
				Alerts []struct {
					State  string
					Labels map[string]string
				}
			}
		}
		if err := asked(t, prom+"/api/v1/alerts", &a); err != nil {
			return err
		}
		fires := false
		for _, x := range a.Data.Alerts {
			fires = fires || x.Labels["alertname"] == alert && x.State == "firing"
		}
		if fires != want {
			return fmt.Errorf("alerts: %v", a.Data.Alerts)
		}
		return nil
	})
}

// neverHere are parts of queries that find nothing in what the test does.
var neverHere = regexp.MustCompile(`tarry_expired_total|tarry_stuck_handlers`)

// A Prometheus that scrapes a tarry has alerts fire and resolve, and knows an answer to
// all that the board asks.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	installed(t, "prometheus")
	address := fmt.Sprintf("127.0.0.1:%d", nettest.FreePort(t))
	server, base := tarryProcess(t, address)
	w := world{env: []string{"TARRY_SERVER=" + base}}
	w.must(t, "push", "mail", "later", "--in", "30s")
	w.must(t, "push", "mail", "now")
	w.must(t, "push", "mail", "bad")
	prom := prometheus(t, base)
	awaits(t, "the first scrapes", func() error {
		var q struct{ Data struct{ Result []any } }
		if err := asked(t, prom+"/api/v1/query?query="+url.QueryEscape(`count_over_time(tarry_messages[1m]) > 2`), &q); err != nil {
			return err
		}
		if len(q.Data.Result) == 0 {
			return fmt.Errorf("nothing is scraped:\n%s", server.out)
		}
		return nil
	})
	died := w.start(t, "work", "mail", "--", "sh", "-c", "exit 65")                          // buries what is due
	alertingWhile(t, prom, "TarryDeaths", true, func() { w.must(t, "push", "mail", "bad") }) // one alone it tells of for 3 s
	died.stop(t)
	for panel, query := range boardQueries(t) {
		awaits(t, "an answer to "+panel+": "+query, func() error {
			var q struct{ Data struct{ Result []any } }
			if err := asked(t, prom+"/api/v1/query?query="+url.QueryEscape(query), &q); err != nil || len(q.Data.Result) > 0 || neverHere.MatchString(query) {
				return err
			}
			return fmt.Errorf("there is none")
		})
	}
	alerting(t, prom, "TarryDeaths", false)
	server.end()
	alerting(t, prom, "TarryDown", true)
	tarryProcess(t, address)
	alerting(t, prom, "TarryDown", false)
}
