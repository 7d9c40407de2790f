package servertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// InFolder returns what runs in a folder, a server or what it has forked: the command line of
// each process. Other systems than Linux tell of none.
func InFolder(t testing.TB, dir string) (running []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if cwd, err := os.Readlink(filepath.Join(p, "cwd")); err == nil && strings.HasPrefix(cwd, dir) {
			line, _ := os.ReadFile(filepath.Join(p, "cmdline")) // it may have ended
			running = append(running, p+" "+string(line))
		}
	}
	return running
}
