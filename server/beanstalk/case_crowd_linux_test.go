package beanstalk_test

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestCrowd has connections wait, 10,000 of them: each costs at most 20 KiB, and a job goes to one of them.
func TestCrowd(t *testing.T) {
	t.Parallel()
	crowd := 10_000
	if testing.Short() {
		crowd = 1000
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if files.Cur < uint64(crowd)+500 {
		t.Skipf("%d connections need as many files, and a process may have %d: ulimit -n", crowd, files.Cur)
	}
	at := startProcess(t, t.TempDir())
	c := at.dial(t)
	waiting := func(n int) {
		t.Helper()
		for end := time.Now().Add(patience); yaml(c.cmd("stats"))["current-waiting"] != strconv.Itoa(n); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s wait, not %d", yaml(c.cmd("stats"))["current-waiting"], n)
			}
		}
	}
	waiting(0)
	before := resident(t, at.pid)
	all := make([]net.Conn, crowd)
	for i := range all {
		nc, err := net.Dial(at.network, at.addr)
		if err == nil {
			_, err = nc.Write([]byte("watch crowd\r\nignore default\r\nreserve\r\n"))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		all[i] = nc
	}
	waiting(crowd)
	each := (resident(t, at.pid) - before) / crowd
	t.Logf("%d bytes each", each)
	if each > 20<<10 && !raceDetector() {
		t.Errorf("a waiting connection costs %d bytes, more than 20 KiB", each)
	}
	c.cmd("use crowd")
	for i := range 10 {
		c.put(0, 0, 60, fmt.Sprint("job ", i))
	}
	waiting(crowd - 10)
}

// raceDetector reports whether the tests run with it, which needs memory of its own.
func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// resident returns the memory of a process.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no VmRSS in %s", text)
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
