package clients_test

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "make clients/node/src/types.ts from the server's openapi.json")

// leastNode is the oldest version of Node that the client is for.
const leastNode = 18

// TestNode compiles the client for Node and runs its tests, in a copy of its folder.
func TestNode(t *testing.T) {
	t.Parallel()
	needsNode(t)
	modules, err := filepath.Abs("node/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t)
	if *update {
		if out, err := exec.CommandContext(t.Context(), "node", "node/scripts/types.mjs", url+"/openapi.json", "node/src/types.ts").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	// The pages whose snippets the tests run lie where they do in the repository.
	root := t.TempDir()
	dir := filepath.Join(root, "clients", "node")
	if err := os.CopyFS(dir, sources{os.DirFS("node")}); err != nil {
		t.Fatal(err)
	}
	err = os.MkdirAll(filepath.Join(root, "docs", "from"), 0o755)
	for _, name := range []string{"README.md", "docs/from/bullmq.md"} {
		var page []byte
		if err == nil {
			page, err = os.ReadFile(filepath.Join("..", name))
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), page, 0o644)
		}
	}
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	tests := exec.CommandContext(t.Context(), "npm", "test")
	tests.Dir, tests.Env = dir, append(os.Environ(), "TARRY_COMMAND="+tarry(t), "TARRY_SERVER="+url)
	out, err := tests.CombinedOutput()
	if err != nil {
		t.Fatalf("npm test: %v\n%s", err, out)
	}
	if passed := regexp.MustCompile(`(?m)^\S+ pass (\d+)$`).FindSubmatch(out); passed == nil || len(passed[1]) < 2 {
		t.Errorf("fewer than 10 tests have passed:\n%s", out)
	}
}

// needsNode skips a test without Node, npm or the packages that make client-packages installs.
func needsNode(t *testing.T) {
	t.Helper()
	const fix = "make client-packages installs Node, npm and what the client's tests need"
	version, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	if err != nil {
		missing(t, "node: "+err.Error(), fix)
	}
	said := strings.TrimSpace(string(version))
	major, _, _ := strings.Cut(strings.TrimPrefix(said, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < leastNode {
		missing(t, "node is "+said+", and the client needs "+strconv.Itoa(leastNode)+" or later", "install it")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		missing(t, err.Error(), fix)
	}
	for _, name := range []string{"typescript", "@types/node"} {
		if _, err := os.Stat(filepath.Join("node/node_modules", name)); err != nil {
			missing(t, name+" is not in clients/node/node_modules", fix)
		}
	}
}

// sources is the client's folder without what is installed or built.
type sources struct{ fs.FS }

func (s sources) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	var kept []fs.DirEntry
	for _, e := range entries {
		if n := e.Name(); n != "node_modules" && n != "dist" && n != "build" {
			kept = append(kept, e)
		}
	}
	return kept, err
}
