package cli

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/diskengine"
)

// The options of a disk store reach it from a flag, the environment and the file.
func TestServeDiskOptions(t *testing.T) {
	for name, c := range map[string]struct {
		store string
		env   []string
		args  []string
	}{
		"flag":        {"disk:data", nil, []string{"--disk-max-pending", "1"}},
		"environment": {"disk:data", []string{"TARRY_DISK_MAX_PENDING=1"}, nil},
		"file":        {"disk:data", nil, []string{"--config", write(t, "config", `{"disk_max_pending": 1, "disk_min_free": "0"}`)}},
		"beside others": {"disk:data?ballast=0&memory=16MiB", nil,
			[]string{"--disk-max-pending", "1", "--disk-retry-for", "0s", "--disk-close-timeout", "1s", "--disk-max-leases", "9"}},
		"url": {"disk:data?max_pending=1", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			s := world{env: c.env}.start(t, append([]string{"serve", "--store", c.store, "--http", "127.0.0.1:0"}, c.args...)...)
			w := world{env: []string{"TARRY_SERVER=" + s.stdout.await(t, `listens on (http://\S+)\n`)[1]}}
			w.must(t, "push", "mail", "x")
			run1(t, w, step{args: "push mail y", code: exitFailed, stderr: `tarry: push .*limit.*\n`})
		})
	}
}

func TestServeRefusesDiskOptions(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, stderr := range map[string]string{
		"--store mem: --disk-memory 1GiB":                `tarry: --disk-memory is for disk stores .*\n`,
		"--store disk:data --disk-memory much":           `tarry: .*memory is a size such as .*\n`,
		"--store disk:data?memory=9MiB --disk-memory 1B": `tarry: --disk-memory is given, and memory in the store's URL .*\n`,
		"--store disk:data?memry=1MiB":                   `tarry: .*has ballast, close_timeout, history, history_max, max_leases, max_pending, memory, min_free, retry_for.*\n`,
	} {
		run1(t, world{}, step{args: "serve --http 127.0.0.1:0 " + args, code: exitUsage, stderr: stderr})
	}
}

// What a flag says is one option, whatever it holds.
func TestDiskOptionsAreEscaped(t *testing.T) {
	memory := "1&ballast=0#x"
	s := storeFlags{store: "disk:///data?min_free=0", disk: map[string]*string{"memory": &memory}}
	store, err := s.url(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(store)
	if err != nil || !strings.HasPrefix(store, "disk:///data?") || u.Query().Get("memory") != memory || len(u.Query()) != 3 {
		t.Errorf("%s: %v", store, err)
	}
}

// In a small container a disk store takes a quarter of what the process may, unless told how much.
func TestDiskMemoryFitsTheContainer(t *testing.T) {
	for _, c := range []struct {
		store, flag string
		limit       int64
		want        string
	}{
		{"disk:data", "", 0, "disk:data?history=24h"},
		{"disk:data?history=1h", "", 0, "disk:data?history=1h"},
		{"disk:data", "", 100 << 20, "disk:data?history=24h&memory=26214400"},
		{"disk:data", "", 1 << 20, "disk:data?history=24h&memory=8388608"},
		{"disk:data", "", 1 << 30, "disk:data?history=24h"},
		{"disk:data", "64MiB", 100 << 20, "disk:data?memory=64MiB&history=24h"},
		{"disk:data?memory=64MiB", "", 100 << 20, "disk:data?memory=64MiB&history=24h"},
		{"mem:", "", 100 << 20, "mem:"},
	} {
		s := storeFlags{store: c.store, disk: map[string]*string{"memory": &c.flag}}
		if got, err := s.url(nil, c.limit); err != nil || got != c.want {
			t.Errorf("%+v: %s: %v", c, got, err)
		}
	}
	for _, o := range diskengine.Options() {
		if o.Name == "memory" && o.Default != fmt.Sprintf("%dMiB", usualMemory>>20) {
			t.Errorf("usually it takes %s", o.Default)
		}
	}
	if _, err := tarry.Open(t.Context(), "disk:"+t.TempDir()+fmt.Sprintf("?memory=%d", leastMemory-1), nil); err == nil {
		t.Errorf("a store takes less than %d bytes", leastMemory)
	}
}
