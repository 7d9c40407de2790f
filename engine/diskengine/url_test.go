package diskengine_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
)

func TestURLSetsTheConfig(t *testing.T) {
	for text, want := range map[string]diskengine.Config{
		"disk:x":                    {},
		"disk:x?memory=1GiB":        {MemoryBytes: 1 << 30},
		"disk:x?max_leases=5":       {MaxLeases: 5},
		"disk:x?max_pending=100000": {MaxPending: 100_000},
		"disk:x?max_pending=0":      {},
		"disk:x?history=24h":        {History: engine.History{Keep: 24 * time.Hour}},
		"disk:x?history_max=5":      {History: engine.History{Max: 5}},
		"disk:x?min_free=5GB":       {MinFreeBytes: 5e9},
		"disk:x?min_free=0":         {MinFreeBytes: -1},
		"disk:x?ballast=1MiB":       {BallastBytes: 1 << 20},
		"disk:x?ballast=0":          {BallastBytes: -1},
		"disk:x?retry_for=5s":       {RetryFor: 5 * time.Second},
		"disk:x?retry_for=0s":       {RetryFor: -1},
		"disk:x?retry_for=1d12h":    {RetryFor: 36 * time.Hour},
		"disk:x?close_timeout=1m":   {CloseTimeout: time.Minute},

		"disk:x?memory=8MiB&ballast=0&close_timeout=1ms": {MemoryBytes: 8 << 20, BallastBytes: -1, CloseTimeout: time.Millisecond},
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if dir, cfg, err := diskengine.ParseURL(u); err != nil || dir != "x" || !reflect.DeepEqual(*cfg, want) {
			t.Errorf("%s: %q, %+v, %v; want %+v", text, dir, cfg, err, want)
		}
	}
}

func TestURLRefusesBadOptions(t *testing.T) {
	for text, hint := range map[string]string{
		"disk:x?memry=1":                   `the scheme disk has no option "memry"; it has ballast, close_timeout, history, history_max, max_leases, max_pending, memory, min_free, retry_for`,
		"disk:x?sync=off":                  `the scheme disk has no option "sync"`,
		"disk:x?memory=big":                "memory is a size such as",
		"disk:x?memory=1MiB":               "memory is at least 8MiB",
		"disk:x?max_leases=0":              "max_leases is at least 1",
		"disk:x?max_leases=many":           "max_leases is a whole number",
		"disk:x?max_pending=-1":            "max_pending is a whole number",
		"disk:x?history=-1s":               "history is a duration",
		"disk:x?history_max=9999999999999": "history_max is too large",
		"disk:x?retry_for=-1s":             "retry_for is a duration",
		"disk:x?close_timeout=0s":          "close_timeout is at least 1ms",
		"disk:x?ballast=1&ballast=2":       "ballast is given twice",
		"disk:":                            "",
		"disk://host/x":                    "",
		"disk:x#y":                         "",
	} {
		if _, err := engine.Open(t.Context(), text); !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", text, err, hint)
		}
	}
}

// TestURLOptionsAct opens a store by its URL for one message at most, and two leases, of which a queue
// that is alone has one.
func TestURLOptionsAct(t *testing.T) {
	e, err := engine.Open(t.Context(), "disk://"+t.TempDir()+"?max_pending=3&max_leases=2&min_free=0&ballast=0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	m := message("q", "", 0)
	rs, err := e.Push(t.Context(), []engine.Message{m, m, m, m})
	if err != nil || rs[2].Err != nil || !errors.Is(rs[3].Err, engine.ErrLimit) {
		t.Errorf("four pushes where three may be pending: %+v, %v", rs, err)
	}
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 3, TTR: time.Hour}})
	if err != nil || len(g.Queues[0].Messages) != 1 || !g.Queues[0].Held {
		t.Errorf("%v, %+v", err, g)
	}
}

// The page has one table of them, with the flags of tarry serve.
func TestURLOptionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/engines/disk.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := "| option | flag of `tarry serve` | what it sets | default |\n|---|---|---|---|\n"
	for _, o := range diskengine.Options() {
		rows += fmt.Sprintf("| `%s` | `--disk-%s` | %s | `%s` |\n", o.Name, strings.ReplaceAll(o.Name, "_", "-"), o.What, o.Default)
	}
	if !strings.Contains(string(page), rows+"\n") {
		t.Errorf("docs/engines/disk.md lacks this table:\n%s", rows)
	}
}
