package clients_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/internal/nettest"
)

// TestPython runs the tests of the Python client, which start servers of their own.
func TestPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		missing(t, err.Error(), "install Python 3.10 or later")
	}
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
