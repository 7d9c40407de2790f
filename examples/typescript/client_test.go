package typescript_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// require names the environment variable that, set to "require", makes the test fail
// rather than be skipped where Node or what make client installs is missing.
const require = "TARRY_TEST_CLIENT"

func missing(t *testing.T, what string) {
	if os.Getenv(require) == "require" {
		t.Fatalf("%s, and %s=require: run make client", what, require)
	}
	t.Skipf("%s: make client installs what generates the client", what)
}

// The client is generated from the document of a server that runs, has to fit the
// program by its types, and does the main job.
func TestGeneratedClient(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "node is not in the PATH")
	}
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"openapi-typescript", "openapi-fetch", "typescript", "@types/node"} {
		if _, err := os.Stat(filepath.Join(modules, name)); err != nil {
			missing(t, name+" is not in examples/typescript/node_modules")
		}
	}
	url := serve(t)

	dir := t.TempDir()
	for _, name := range []string{"package.json", "tsconfig.json", "src"} {
		from, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "src" {
			if err := os.MkdirAll(filepath.Join(dir, "src"), 0o755); err != nil {
				t.Fatal(err)
			}
			name, from = "src/main.ts", filepath.Join(from, "main.ts")
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TARRY_SERVER="+url)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("node %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("node_modules/openapi-typescript/bin/cli.js", url+"/openapi.json", "--output", "src/generated/tarry.ts")
	run("node_modules/typescript/bin/tsc")
	if out := run("dist/main.js"); !strings.Contains(out, "order 41 was cancelled, order a/42 was paid") {
		t.Errorf("it said %q", out)
	}
}

// serve runs a server until the test ends, and returns its address.
func serve(t *testing.T) string {
	c, err := tarry.Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.New(c, nil).Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = c.Close()
	})
	return "http://" + ln.Addr().String()
}
