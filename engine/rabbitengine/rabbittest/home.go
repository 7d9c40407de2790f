package rabbittest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// home is the part of the installed RabbitMQ that a broker sees: all but the disabled
// plugins. The runtime would search their directories for each of the thousand modules that
// it loads.
type home struct {
	dir string
	env []string // environment of its scripts
}

// pkg is the package of RabbitMQ.
const pkg = "rabbitmq-server"

// newHome makes a home in a directory.
func newHome(t testing.TB, dir string, c *choice) *home {
	t.Helper()
	// Debian's wrappers in PATH require root and switch to the user rabbitmq.
	script := servertest.Installed(t, "rabbitmq-env", pkg, "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin")
	script, err := filepath.EvalSymlinks(script)
	if err != nil {
		t.Fatal(err)
	}
	h := &home{dir: filepath.Join(dir, "home")}
	installed := filepath.Dir(filepath.Dir(script))
	if err := os.MkdirAll(h.plugins(), 0o755); err != nil {
		t.Fatal(err)
	}
	h.link(t, filepath.Join(installed, "sbin"))
	h.link(t, filepath.Join(installed, "escript"))
	all, err := filepath.Glob(filepath.Join(installed, "plugins", "*-*"))
	if err != nil {
		t.Fatal(err)
	}
	var first []string
	for _, path := range all {
		name := filepath.Base(path)
		name = name[:strings.LastIndexByte(name, '-')]
		if strings.HasPrefix(name, "rabbitmq_") && name != "rabbitmq_prelaunch" && !slices.Contains(c.plugins, name) {
			continue
		}
		h.link(t, path)
		if slices.Contains(largest, name) {
			first = append(first, "-pa", filepath.Join(path, "ebin"))
		}
	}
	args := slices.Concat(first, []string{"-kernel", "inet_dist_use_interface", "{127,0,0,1}"}, c.arguments)
	h.env = []string{
		"RABBITMQ_SCRIPTS_DIR=" + filepath.Join(h.dir, "sbin"),
		"RABBITMQ_PLUGINS_DIR=" + h.plugins(),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=" + strings.Join(args, " "),
	}
	return h
}

// largest have most of the modules and are searched first.
var largest = []string{"rabbit", "rabbit_common", "ra"}

func (h *home) plugins() string { return filepath.Join(h.dir, "plugins") }

// script is the path of one of RabbitMQ's scripts.
func (h *home) script(name string) string { return filepath.Join(h.dir, "sbin", name) }

// link links an installed path into a home.
func (h *home) link(t testing.TB, path string) {
	t.Helper()
	to := filepath.Join(h.dir, filepath.Base(path))
	if filepath.Base(filepath.Dir(path)) == "plugins" {
		to = filepath.Join(h.plugins(), filepath.Base(path))
	}
	if err := os.Symlink(path, to); err != nil {
		t.Fatal(err)
	}
}
