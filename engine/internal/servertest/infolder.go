package servertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// InFolder returns the command lines of the processes that run in a directory: a server and its
// children. On other systems than Linux there are none.
func InFolder(t testing.TB, dir string) (running []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if cwd, err := os.Readlink(filepath.Join(p, "cwd")); err == nil && strings.HasPrefix(cwd, dir) {
			line, _ := os.ReadFile(filepath.Join(p, "cmdline")) // the process may have ended
			running = append(running, p+" "+string(line))
		}
	}
	return running
}
