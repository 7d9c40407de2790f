package servertest

import (
	"os"
	"path/filepath"
	"testing"
)

// require names the environment variable that, set to "require", makes tests fail
// rather than be skipped where a server is missing.
const require = "TARRY_TEST_SERVERS"

// Installed returns the path of a program, which the Debian package pkg has: in the PATH
// or else in one of the folders that fit a pattern, the last of them; see also Root. Where it
// is missing the test is skipped, and says so, or fails if TARRY_TEST_SERVERS=require.
func Installed(t testing.TB, program, pkg string, folders ...string) string {
	t.Helper()
	path, err := lookPath(program)
	if err == nil {
		return path
	}
	where := "the PATH"
	for _, folder := range folders {
		paths, err := filepath.Glob(filepath.Join(Root(), folder, program))
		if err == nil && len(paths) > 0 {
			return paths[len(paths)-1]
		}
		where += " nor in " + folder
	}
	missing(t, program+" is not in "+where, pkg)
	return ""
}

// libfaketime is the path of the library. Newer servers crash as they start with it, or hang.
func libfaketime(t testing.TB) string {
	t.Helper()
	if Root() != "" {
		t.Skip("only of the machine's own servers is the clock set")
	}
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
