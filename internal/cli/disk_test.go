package cli

import (
	"net/url"
	"strings"
	"testing"
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
		"--store disk:data?memry=1MiB":                   `tarry: .*has ballast, close_timeout, max_leases, max_pending, memory, min_free, retry_for.*\n`,
	} {
		run1(t, world{}, step{args: "serve --http 127.0.0.1:0 " + args, code: exitUsage, stderr: stderr})
	}
}

// What a flag says is one option, whatever it holds.
func TestDiskOptionsAreEscaped(t *testing.T) {
	memory := "1&ballast=0#x"
	d := diskFlags{values: map[string]*string{"memory": &memory}}
	store, err := d.on("disk:///data?min_free=0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(store)
	if err != nil || !strings.HasPrefix(store, "disk:///data?") || u.Query().Get("memory") != memory || len(u.Query()) != 2 {
		t.Errorf("%s: %v", store, err)
	}
}
