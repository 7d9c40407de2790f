package clients_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/internal/nettest"
)

// TestPython runs the tests of the Python client, which start servers of their own.
func TestPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	switch {
	case err != nil && os.Getenv("TARRY_TEST_SERVERS") == "require":
		t.Fatal(err, "and TARRY_TEST_SERVERS=require: make servers installs Python")
	case err != nil:
		t.Skip(err, "make servers installs Python")
	}
	if *update {
		types, err := exec.CommandContext(t.Context(), python, "python/generate.py", serve(t)+"/openapi.json").Output()
		if err == nil {
			err = os.WriteFile("python/tarry/types.py", types, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// Go runs a test again when a file has changed in a folder that it has read.
	_ = filepath.WalkDir("python", func(string, fs.DirEntry, error) error { return nil })
	_, cert, key := nettest.Certificate(t)
	cmd := exec.CommandContext(t.Context(), python, "-m", "unittest", "-v")
	cmd.Dir = "python"
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "TARRY_BINARY="+tarry(t), "TARRY_TEST_CERT="+cert, "TARRY_TEST_KEY="+key)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "skipped") {
			t.Log("SKIPPED: ", line)
		}
	}
}
