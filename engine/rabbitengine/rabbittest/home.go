package rabbittest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// newHome links the installed RabbitMQ into the directory of a broker, without the disabled
// plugins. The runtime would search their directories for each of the thousand modules that
// it loads. It returns the path, and the environment of the scripts.
func newHome(t testing.TB, c *servertest.Command) (home string, env []string) {
	t.Helper()
	// Debian's wrappers in PATH require root and switch to the user rabbitmq.
	script := servertest.Installed(t, "rabbitmq-env", "rabbitmq-server", "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin")
	script, err := filepath.EvalSymlinks(script)
	if err != nil {
		t.Fatal(err)
	}
	installed := filepath.Dir(filepath.Dir(script))
	all, err := filepath.Glob(filepath.Join(installed, "plugins", "*-*"))
	if err != nil {
		t.Fatal(err)
	}
	home = filepath.Join(c.Dir, "home")
	if err := os.MkdirAll(filepath.Join(home, "plugins"), 0o755); err != nil {
		t.Fatal(err)
	}
	linked, first := []string{"sbin", "escript"}, []string(nil)
	for _, path := range all {
		base := filepath.Base(path)
		name := base[:strings.LastIndexByte(base, '-')]
		if strings.HasPrefix(name, "rabbitmq_") && name != "rabbitmq_prelaunch" && !slices.Contains(c.Plugins, name) {
			continue
		}
		linked = append(linked, filepath.Join("plugins", base))
		if name == "rabbit" || name == "rabbit_common" || name == "ra" { // these have most of the modules
			first = append(first, "-pa", filepath.Join(path, "ebin"))
		}
	}
	for _, name := range linked {
		if err := os.Symlink(filepath.Join(installed, name), filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	args := slices.Concat(first, []string{"-kernel", "inet_dist_use_interface", "{127,0,0,1}"}, c.Arguments)
	return home, []string{
		"RABBITMQ_SCRIPTS_DIR=" + filepath.Join(home, "sbin"),
		"RABBITMQ_PLUGINS_DIR=" + filepath.Join(home, "plugins"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=" + strings.Join(args, " "),
	}
}
