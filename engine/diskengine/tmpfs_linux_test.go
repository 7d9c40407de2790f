package diskengine_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
)

// TestFullFileSystem fills a file system of its own, which takes root to make.
func TestFullFileSystem(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to make a file system")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=160m"); err != nil {
		t.Skipf("no file system can be made: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	cfg := &diskengine.Config{Logger: quiet, MinFreeBytes: -1, BallastBytes: 16 << 20, MemoryBytes: 24 << 20}
	e, err := diskengine.Open(dir+"/data", cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	body := noise(64 << 10)
	n := 0
	for err == nil && n < 10_000 {
		var some []engine.Message
		for range 8 {
			m := message("q", fmt.Sprint(n), 0)
			m.Body = body
			some = append(some, m)
			n++
		}
		err = pushAll(t, e, some...)
	}
	if !errors.Is(err, engine.ErrNoSpace) {
		t.Fatalf("push %d: %v", n, err)
	}
	for {
		leases := lease(t, e, "q", 100)
		if len(leases) == 0 {
			break
		}
		settle(t, e, leases, engine.Ack)
	}
	await(t, "pushes are accepted", func() bool {
		err := pushAll(t, e, message("q", fmt.Sprint(time.Now().UnixNano()), time.Hour))
		if err != nil && !errors.Is(err, engine.ErrNoSpace) {
			t.Fatal(err)
		}
		return err == nil
	})
}
