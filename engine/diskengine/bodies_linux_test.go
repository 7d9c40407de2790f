package diskengine_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

const (
	bodiesDir    = "TARRY_TEST_BODIES"
	bodiesMemory = 32 << 20
	largeBodies  = 16 << 20
)

// TestLargeBodiesAreBounded has 20 callers push large bodies at once, in a process of their own, and one after
// the other to a queue that is full: what it takes at most is the memory that is allowed and twice a body,
// beside the one that all push and what a process takes anyway.
func TestLargeBodiesAreBounded(t *testing.T) {
	if dir := os.Getenv(bodiesDir); dir != "" {
		pushBodies(t, dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLargeBodiesAreBounded$", "-test.v")
	cmd.Env = append(os.Environ(), bodiesDir+"="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, text, _ := strings.Cut(string(out), "most resident: ")
	text, _, _ = strings.Cut(text, " kB")
	kB, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%d MiB were resident at most", kB>>10)
	const process = 96 << 20 // with the race detector; without it, 30
	if most := bodiesMemory + 2*largeBodies + process; kB<<10 > most {
		t.Errorf("%d MiB were resident, at most %d are allowed", kB>>10, most>>20)
	}
}

func pushBodies(t *testing.T, dir string) {
	// Without merges: each reads a body of all sstables that it merges.
	e, err := diskengine.OpenOn(vfs.OS{}, dir, &diskengine.Config{Logger: quiet, MemoryBytes: bodiesMemory}, diskengine.Tune{MergeTables: 100})
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, largeBodies)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			m := message("q", fmt.Sprint(i), time.Hour)
			m.Body = body
			if err := pushAll(t, e, m); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if _, err := e.Configure(t.Context(), "full", engine.Settings{MaxPending: 1}, ""); err != nil {
		t.Fatal(err)
	}
	m := message("full", "", time.Hour)
	if err := pushAll(t, e, m); err != nil {
		t.Fatal(err)
	}
	m.Body = body
	for range 20 {
		if err := pushAll(t, e, m); !errors.Is(err, engine.ErrLimit) {
			t.Fatalf("a push to a full queue: %v", err)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	text, _, _ = strings.Cut(text, "kB")
	fmt.Println("most resident:", strings.TrimSpace(text), "kB")
	if i, err := e.Queue(t.Context(), "q"); err != nil || i.Scheduled != 20 {
		t.Errorf("%d are there: %v", i.Scheduled, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
