package diskengine_test

import (
	"bufio"
	"context"
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
	"go.uber.org/goleak"
)

// victimDir names, in the environment, the directory on which this test binary
// works until it is killed.
const victimDir = "TARRY_TEST_VICTIM_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		fmt.Println("stopped", victim(dir))
		return
	}
	// Pebble leaves this one behind when an opening fails.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}

// victim pushes, cancels, leases and acks until it is killed, and writes a line
// before and after each call.
func victim(dir string) error {
	e, err := diskengine.Open(dir, &diskengine.Config{Logger: quiet, MinFreeBytes: -1, MemTableBytes: 512 << 10})
	if err != nil {
		return err
	}
	ctx := context.Background()
	_, revision, err := e.Settings(ctx, "q")
	if err != nil {
		return err
	}
	configured, err := strconv.Atoi(revision)
	if err != nil {
		return err
	}
	var out sync.Mutex
	say := func(what, key string) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(what, key)
	}
	failed := make(chan error)
	for g := range 6 {
		go func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%d-%d-%d", os.Getpid(), g, i)
				due := engine.When{In: time.Duration(i%3) * 3 * time.Millisecond}
				if i%4 == 3 {
					due.In = time.Hour
				}
				m := message("q", key, 0)
				m.Due = due
				if r, err := e.Push(ctx, []engine.Message{m}); err != nil || r[0].Err != nil {
					failed <- errors.Join(err, r[0].Err)
					return
				}
				say("pushed", key)
				if i%2 == 1 {
					say("cancelling", key)
					if errs, err := e.Cancel(ctx, []engine.Ref{{Queue: "q", Key: key}}); err == nil && errs[0] == nil {
						say("cancelled", key)
					}
				}
			}
		}()
	}
	go func() {
		for i := 0; ; i++ {
			if i%50 == 0 {
				revision, err := e.Configure(ctx, "q", engine.Settings{MaxPending: firstMost + int64(configured)}, "")
				if err != nil {
					failed <- err
					return
				}
				configured++
				say("configured", revision)
			}
			g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 5, TTR: time.Hour, Remote: i%2 == 0}})
			if err != nil {
				failed <- err
				return
			}
			for j, l := range g.Queues[0].Messages {
				if l.Due.After(g.Now) {
					say("early", l.Key)
				}
				say("leased", l.Key)
				if j == 0 { // for good
					if i%2 == 0 {
						say("held", l.Key)
					}
					continue
				}
				say("acking", l.Key)
				if s, err := e.Settle(ctx, []engine.Settlement{{Token: l.Token, Do: engine.Ack}}); err == nil && s[0].Err == nil {
					say("acked", l.Key)
				}
			}
		}
	}()
	return <-failed
}

// TestKill kills a process under load again and again, and then looks for what it
// had promised.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := 15
	if os.Getenv("TARRY_TEST_THOROUGH") != "" {
		rounds = 50
	}
	dir := t.TempDir()
	revision := ""
	said := make(map[string]map[string]bool) // what was said, by key
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimDir+"="+dir)
		cmd.Stderr = os.Stderr
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(pipe)
		for n := 0; lines.Scan(); n++ {
			what, key, ok := strings.Cut(lines.Text(), " ")
			if what == "stopped" || what == "early" {
				t.Errorf("round %d: %s", round, lines.Text())
			}
			if !ok {
				continue
			}
			if what == "configured" {
				revision = key
				continue
			}
			if said[key] == nil {
				said[key] = make(map[string]bool)
			}
			said[key][what] = true
			if n == 200+round*20 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			return
		}
	}
	e := place{dir, diskengine.Config{Logger: quiet}}.open(t)
	defer e.Close()
	_, got, err := e.(engine.Configurer).Settings(t.Context(), "q")
	if n, _ := strconv.Atoi(got); err != nil || strconv.Itoa(n-1) != revision && got != revision {
		t.Errorf("settings at revision %s, %v, last answered %s", got, err, revision)
	}
	checkSettings(t, e, "")
	pushed := 0
	for key, s := range said {
		info, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			t.Fatal(err)
		}
		ended := info.State == engine.Finished
		found := err == nil && !ended
		switch {
		case s["held"] && info.State != engine.Leased:
			t.Errorf("%s was leased to another process and is %s: %v", key, info.State, s)
		case s["cancelled"] && (found || s["leased"]), s["acked"] && found:
			t.Errorf("%s is back: %v", key, s)
		case (s["cancelled"] || s["acked"]) && ended != (remember(key) > 0):
			t.Errorf("%s is gone, remembered: %v", key, ended)
		case s["pushed"] && !s["cancelling"] && !s["acking"] && !found:
			t.Errorf("%s is lost: %v", key, s)
		}
		if s["pushed"] {
			pushed++
		}
	}
	t.Logf("%d pushes answered in %d rounds", pushed, rounds)
}
