package logengine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine"
	"github.com/tarryhq/tarry/engine/logengine/internal/check"
	"github.com/tarryhq/tarry/engine/logengine/internal/disk"
)

// victimDir names, in the environment, the directory on which this test binary works until it is
// killed.
const victimDir = "TARRY_TEST_VICTIM_DIR"

// often has flushes and merges under way all the time.
var often = logengine.Tune{SegmentBytes: 256 << 10, SpanBytes: 64 << 10, BlockBytes: 4096, MergeRuns: 3}

// victim pushes, cancels, leases and acks until it is killed, and writes a line before and after
// each call.
func victim(dir string) error {
	e, err := logengine.OpenOn(disk.OS{}, dir, &logengine.Config{Logger: quiet, MinFreeBytes: -1}, often)
	if err != nil {
		return err
	}
	ctx := context.Background()
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
				m := message("q", key, time.Duration(i%3)*3*time.Millisecond)
				if i%4 == 3 {
					m.Due.In = time.Hour
				}
				r, err := e.Push(ctx, []engine.Message{m})
				if err == nil {
					err = r[0].Err
				}
				if err != nil {
					failed <- err
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

// TestKill kills a process under load again and again, and then looks for what it had promised.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := 10
	if os.Getenv("TARRY_TEST_THOROUGH") != "" {
		rounds = 200
	}
	dir := t.TempDir()
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
			if said[key] == nil {
				said[key] = make(map[string]bool)
			}
			said[key][what] = true
			if n == 300+round%10*50 {
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
	if rep, err := check.Check(disk.OS{}, dir, nil); err != nil || !rep.Sound() {
		t.Errorf("the store is not sound: %+v, %v", rep, err)
	}
	e := place{disk.OS{}, dir, logengine.Config{Logger: quiet, MinFreeBytes: -1}, often}.open(t)
	defer e.Close()
	pushed := 0
	for key, s := range said {
		info, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			t.Fatal(err)
		}
		found := err == nil
		switch {
		case s["held"] && info.State != engine.Leased:
			t.Errorf("%s was leased to another process and is %s: %v", key, info.State, s)
		case s["cancelled"] && (found || s["leased"]), s["acked"] && found:
			t.Errorf("%s is back: %v", key, s)
		case s["pushed"] && !s["cancelling"] && !s["acking"] && !found:
			t.Errorf("%s is lost: %v", key, s)
		}
		if s["pushed"] {
			pushed++
		}
	}
	t.Logf("%d pushes answered in %d rounds", pushed, rounds)
}
