package servertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// require names the environment variable that, set to "require", makes tests fail
// rather than be skipped where a server is missing.
const require = "TARRY_TEST_SERVERS"

// Installed returns the path of a program, which the Debian package pkg has. Where it
// is missing the test is skipped, and says so, or fails if TARRY_TEST_SERVERS=require.
func Installed(t testing.TB, program, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		missing(t, program+" is not in the PATH", pkg)
	}
	return path
}

// libfaketime is the path of the library.
func libfaketime(t testing.TB) string {
	t.Helper()
	paths, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(paths) == 0 {
		missing(t, "libfaketime.so.1 is not installed", "faketime")
	}
	return paths[0]
}

func missing(t testing.TB, what, pkg string) {
	t.Helper()
	if os.Getenv(require) == "require" {
		t.Fatalf("%s, and %s=require: install the Debian package %s, or run make servers", what, require, pkg)
	}
	t.Skipf("%s: install the Debian package %s, or run make servers", what, pkg)
}
