package servertest

import (
	"os"
	"path/filepath"
	"testing"
)

// require is the environment variable that, set to "require", makes tests without their server
// fail instead of skipping them.
const require = "TARRY_TEST_SERVERS"

// Installed returns the path of a program of the Debian package pkg. It looks in PATH, and
// then in the last directory that matches one of the patterns folders; see also Root. If the
// program is missing, the test is skipped, or fails with TARRY_TEST_SERVERS=require.
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

// libfaketime returns the path of the library. Newer servers crash or hang at their start
// with it.
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
