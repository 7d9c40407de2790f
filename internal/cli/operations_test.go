package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// installed is the path of a program of the Debian package prometheus. Where it is missing
// the test is skipped, and says so, or fails if TARRY_TEST_SERVERS=require.
func installed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return path
	case os.Getenv("TARRY_TEST_SERVERS") == "require":
		t.Fatalf("%s is not in the PATH, and TARRY_TEST_SERVERS=require: install the Debian package prometheus, or run make servers", program)
	}
	t.Skipf("%s is not in the PATH: install the Debian package prometheus, or run make servers", program)
	return ""
}

// operations is the path of a file for those who run tarry.
func operations(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "docs", "operations", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func readOperations(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(operations(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The alerting rules fire and resolve on made-up series as their tests say.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool := installed(t, "promtool")
	for _, args := range [][]string{{"check", "rules", operations(t, "alerts.yml")}, {"test", "rules", operations(t, "alerts_test.yml")}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// Each alert has a test, and a place in the runbook to which it leads.
func TestAlertsHaveRunbooks(t *testing.T) {
	runbook, tests := readOperations(t, "alerts.md"), readOperations(t, "alerts_test.yml")
	rules := regexp.MustCompile(`(?s)- alert: (\w+)\n.*?runbook: (\S+)`).FindAllStringSubmatch(readOperations(t, "alerts.yml"), -1)
	for _, m := range rules {
		if !strings.Contains(runbook, "\n## "+m[1]+"\n") || m[2] != "docs/operations/alerts.md#"+strings.ToLower(m[1]) {
			t.Errorf("%s leads to %s, and the runbook has no such part", m[1], m[2])
		}
		if !regexp.MustCompile(`alertname: ` + m[1] + `\n\s+exp_alerts:\n`).MatchString(tests) {
			t.Errorf("no test has %s fire", m[1])
		}
		if !strings.Contains(tests, "alertname: "+m[1]+", exp_alerts: []}") {
			t.Errorf("no test has %s not fire", m[1])
		}
	}
	if n := strings.Count(runbook, "\n## "); n != len(rules) || n < 6 {
		t.Errorf("%d alerts, and %d in the runbook", len(rules), n)
	}
}

// board is what a board for Grafana asks.
type board struct {
	Panels []struct {
		ID      int
		Title   string
		Targets []struct{ Expr string }
	}
}

// boardQueries are the queries of the board, with what Grafana puts in.
func boardQueries(t *testing.T) map[string]string {
	t.Helper()
	var b board
	if err := json.Unmarshal([]byte(readOperations(t, "grafana.json")), &b); err != nil {
		t.Fatal(err)
	}
	queries, ids := make(map[string]string), make(map[int]bool)
	put := strings.NewReplacer("$job", "tarry", "$instance", ".*", "$queue", ".*", "$__rate_interval", "1m")
	for _, p := range b.Panels {
		if ids[p.ID] || len(p.Targets) == 0 {
			t.Errorf("panel %q: its id %d is taken, or it asks nothing", p.Title, p.ID)
		}
		ids[p.ID] = true
		for i, target := range p.Targets {
			q := put.Replace(target.Expr)
			if strings.Contains(q, "$") {
				t.Errorf("panel %q: a variable is left in %s", p.Title, q)
			}
			queries[p.Title+" "+string(rune('A'+i))] = q
		}
	}
	return queries
}

// The board's queries are PromQL: as rules promtool checks them.
func TestBoardQueries(t *testing.T) {
	promtool := installed(t, "promtool")
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, q := range boardQueries(t) {
		rules = append(rules, rule{"board:query", q})
	}
	slices.SortFunc(rules, func(a, b rule) int { return strings.Compare(a.Expr, b.Expr) })
	file, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "board", "rules": rules}}}) // which is YAML too
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "board.yml")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint=none", path).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// The unit is one for systemd, hardened, and its settings are those of serve.
func TestUnit(t *testing.T) {
	unit := readOperations(t, "tarry.service")
	for _, want := range []string{"DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=\n", "StateDirectory=tarry\n",
		"Type=notify\n", "ExecReload=/bin/kill -HUP $MAINPID\n", "TimeoutStartSec=infinity\n",
		"RestartPreventExitStatus=2\n", "ExecStart=/usr/local/bin/tarry serve\n", "TARRY_STORE=disk:/var/lib/tarry"} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit has no %s", want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: the unit's text alone was checked")
	}
	path := filepath.Join(t.TempDir(), "tarry.service")
	if err := os.WriteFile(path, []byte(strings.Replace(unit, "/usr/local/bin/tarry", os.Args[0], 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", "--man=no", path}, {"security", "--offline=yes", "--threshold=20", "--no-pager", path}} {
		if out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput(); err != nil || strings.Contains(string(out), "Unknown") {
			t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// The image is static, runs as nobody in particular, and probes what there is.
func TestDockerfile(t *testing.T) {
	file := readOperations(t, "Dockerfile")
	for _, want := range []string{"CGO_ENABLED=0 go build", "FROM scratch\n", "USER 65532:65532\n", `CMD ["/tarry", "status", "--ready"]`, `CMD ["serve"]`} {
		if !strings.Contains(file, want) {
			t.Errorf("the Dockerfile has no %s", want)
		}
	}
	need := "golang:" + regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readModule(t))[1]
	if !strings.Contains(file, "FROM "+need+" AS build\n") {
		t.Errorf("the Dockerfile does not build with %s", need)
	}
}

func readModule(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
