package cli

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestMemoryLimitIsTheContainers(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for name, container := range map[string]memlimit.Provider{
		"unlimited":  func() (uint64, error) { return 0, memlimit.ErrNoLimit },
		"unreadable": func() (uint64, error) { return 0, errors.New("no cgroup") },
		"boundless":  memlimit.Limit(math.MaxUint64),
	} {
		if got, set := limitMemory(container, heapFloor), debug.SetMemoryLimit(-1); got != 0 || set != math.MaxInt64 {
			t.Errorf("%s: the limit is %d, said to be %d", name, set, got)
		}
	}
	if got, set := limitMemory(memlimit.Limit(1000<<20), 5), debug.SetMemoryLimit(-1); got != 900<<20 || set != 900<<20+5 {
		t.Errorf("in 1000 MiB the limit is %d, said to be %d", set, got)
	}
}

// memoryGroup makes a cgroup of 128 MiB, and returns the file to which its processes are written. Where
// none can be made the test is skipped.
func memoryGroup(t *testing.T) string {
	t.Helper()
	for dir, file := range map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"} {
		made, err := os.MkdirTemp(dir, "tarry-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(made); err != nil {
				t.Error(err)
			}
		})
		limit, err := os.OpenFile(filepath.Join(made, file), os.O_WRONLY, 0) // not made here: then it is no cgroup
		if err != nil {
			continue
		}
		_, err = limit.WriteString("134217728")
		if limit.Close() == nil && err == nil {
			return filepath.Join(made, "cgroup.procs")
		}
	}
	t.Skip("no cgroup with a limit can be made here")
	return ""
}

func TestServeSaysTheMemoryLimitOfItsContainer(t *testing.T) {
	procs := memoryGroup(t)
	for env, said := range map[string]bool{"": true, "GOMEMLIMIT=1GiB": false} {
		c := startChild(t, []string{"TARRY_TEST_MAIN=1", env}, "sh", "-c", `echo $$ >"$0"; exec "$@"`,
			procs, os.Args[0], "serve", "--store", "mem:", "--http", "127.0.0.1:0")
		c.out.await(t, "listens on")
		if got := strings.Contains(c.out.String(), "tarry: memory limit 115 MiB, nine tenths of the container's; "); got != said {
			t.Errorf("with %q it said:\n%s", env, c.out)
		}
		c.end()
	}
}
