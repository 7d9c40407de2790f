package diskengine

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
)

func TestURLSetsTheConfig(t *testing.T) {
	for text, want := range map[string]Config{
		"disk:x":                                        {},
		"disk:x?cache=1GiB":                             {CacheBytes: 1 << 30},
		"disk:x?mem_table=4MiB":                         {MemTableBytes: 4 << 20},
		"disk:x?max_pending=100000":                     {MaxPending: 100_000},
		"disk:x?max_pending=0":                          {},
		"disk:x?min_free=5GB":                           {MinFreeBytes: 5e9},
		"disk:x?min_free=0":                             {MinFreeBytes: -1},
		"disk:x?ballast=1MiB":                           {BallastBytes: 1 << 20},
		"disk:x?ballast=0":                              {BallastBytes: -1},
		"disk:x?retry_for=5s":                           {RetryFor: 5 * time.Second},
		"disk:x?retry_for=0s":                           {RetryFor: -1},
		"disk:x?retry_for=1d12h":                        {RetryFor: 36 * time.Hour},
		"disk:x?close_timeout=1m":                       {CloseTimeout: time.Minute},
		"disk:x?cache=2MiB&ballast=0&close_timeout=1ms": {CacheBytes: 2 << 20, BallastBytes: -1, CloseTimeout: time.Millisecond},
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if dir, cfg, err := ParseURL(u); err != nil || dir != "x" || !reflect.DeepEqual(*cfg, want) {
			t.Errorf("%s: %q, %+v, %v; want %+v", text, dir, cfg, err, want)
		}
	}
}

func TestURLRefusesBadOptions(t *testing.T) {
	for text, hint := range map[string]string{
		"disk:x?cash=1":           `a disk: URL has no option "cash"; it has ballast, cache, close_timeout, max_pending, mem_table, min_free, retry_for`,
		"disk:x?cache=big":        "cache is a size such as",
		"disk:x?cache=1":          "cache is at least 1MiB",
		"disk:x?mem_table=2GiB":   "mem_table is 1MiB to 1GiB",
		"disk:x?max_pending=-1":   "max_pending is a whole number",
		"disk:x?retry_for=-1s":    "retry_for is a duration",
		"disk:x?close_timeout=0s": "close_timeout is at least 1ms",

		"disk:x?store=log&close_timeout=0s": "close_timeout is at least 1ms",
		"disk:x?ballast=1&ballast=2":        "ballast is given twice",
	} {
		if _, err := engine.Open(t.Context(), text); !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v, want %q", text, err, hint)
		}
	}
}

func TestURLOptionsAct(t *testing.T) {
	e, err := engine.Open(t.Context(), "disk://"+t.TempDir()+"?max_pending=1&min_free=0&ballast=0")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	m := engine.Message{Queue: "q", Terms: engine.Terms{MaxAttempts: 1, TTR: time.Minute}}
	rs, err := e.Push(t.Context(), []engine.Message{m, m})
	if err != nil || rs[0].Err != nil || !errors.Is(rs[1].Err, engine.ErrLimit) {
		t.Errorf("two pushes where one may be pending: %+v, %v", rs, err)
	}
}

// The page has one table of them, with the flags of tarry serve.
func TestURLOptionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/engines/disk.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := "| option | flag of `tarry serve` | what it sets | default |\n|---|---|---|---|\n"
	for _, o := range Options() {
		rows += fmt.Sprintf("| `%s` | `--disk-%s` | %s | `%s` |\n", o.Name, strings.ReplaceAll(o.Name, "_", "-"), o.What, o.Default)
	}
	if !strings.Contains(string(page), rows+"\n") {
		t.Errorf("docs/engines/disk.md lacks this table:\n%s", rows)
	}
}
