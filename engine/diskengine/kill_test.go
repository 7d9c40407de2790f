package diskengine_test

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/verify"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// TestKill kills a process under load again and again, and looks for what it had promised: after each
// fifth time what it was since the last look, and at the end all. TARRY_TEST_KILLS says how often.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := 10
	if os.Getenv("TARRY_TEST_THOROUGH") != "" {
		rounds = 200
	}
	if n, err := strconv.Atoi(os.Getenv("TARRY_TEST_KILLS")); err == nil {
		rounds = n
	}
	j := &journal{t: t, dir: t.TempDir(), of: make(map[string]*promised), fresh: make(map[string]bool), counts: make(map[string]int)}
	for j.round = range rounds {
		lines := 400 + rand.IntN(600)
		if j.round%4 == 3 {
			lines = rand.IntN(50) // while it opens the store, or soon after
		}
		j.kill(lines)
		if t.Failed() {
			return
		}
		if j.round%5 == 4 {
			j.verify(slices.Collect(maps.Keys(j.fresh)))
			clear(j.fresh)
		}
	}
	if rep, err := verify.Check(vfs.OS{}, j.dir, nil); err != nil || !rep.Sound() {
		t.Errorf("the store is not sound: %+v, %v", rep, err)
	}
	j.verify(slices.Collect(maps.Keys(j.of)))
	t.Logf("%d rounds, %d messages: %v", rounds, len(j.of), j.counts)
}

// journal is what processes said before they were killed.
type journal struct {
	t        *testing.T
	dir      string
	round    int
	of       map[string]*promised // by key, and by the name of what was pushed as one
	fresh    map[string]bool      // of which something was said since the last look
	standing []string             // keys of the queue that is purged
	counts   map[string]int       // of what was said
}

// promised is what was said of a message.
type promised struct {
	due    int64           // not before, in Unix milliseconds
	said   map[string]bool // ever
	last   string
	leased int // in which round, from 1 on; 0: never
}

// kill starts a process and kills it after so many lines.
func (j *journal) kill(after int) {
	j.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedDir+"="+j.dir)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		j.t.Fatal(err)
	}
	hangs := time.AfterFunc(2*time.Minute, func() {
		j.t.Errorf("round %d: nothing is said any more", j.round)
		_ = cmd.Process.Kill()
	})
	defer hangs.Stop()
	kill := func() {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			j.t.Error(err)
		}
	}
	if after < 10 {
		time.AfterFunc(time.Duration(after)*5*time.Millisecond, kill)
	}
	lines := bufio.NewScanner(pipe)
	for n := 0; lines.Scan(); n++ { // what was said before its end is read behind that
		if n == after {
			kill()
		}
		j.hear(lines.Text())
	}
	_ = cmd.Wait() // it was killed
}

// hear notes a line, and finds fault with what may not be, whatever the store says later.
func (j *journal) hear(line string) {
	words := strings.Fields(line)
	if len(words) != 3 {
		if strings.HasPrefix(line, "stopped") {
			j.t.Errorf("round %d: %s", j.round, line)
		}
		return // the last one may be cut
	}
	what, key := words[0], words[1]
	at, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		j.t.Fatal(err)
	}
	j.counts[what]++
	if key == "all" { // that are purged
		for _, k := range j.standing {
			j.note(k, what)
		}
		if what == "purged" {
			j.standing = nil
		}
		return
	}
	p := j.promised(key)
	switch what {
	case "pushing":
		if p.due = at; queueOf(key) == "purged" {
			j.standing = append(j.standing, key)
		}
	case "leased", "held":
		switch {
		case at < p.due:
			j.t.Errorf("round %d: %s was leased %d ms early", j.round, key, p.due-at)
		case p.leased == j.round+1 && p.last != "redriven", p.said["held"], p.said["acked"], p.said["cancelled"], p.last == "buried":
			j.t.Errorf("round %d: %s was leased once more: %+v", j.round, key, p)
		}
		p.leased = j.round + 1
	case "cancelled":
		if p.leased == j.round+1 {
			j.t.Errorf("round %d: %s was cancelled while it was leased: %+v", j.round, key, p)
		}
	}
	j.note(key, what)
}

func (j *journal) promised(key string) *promised {
	p := j.of[key]
	if p == nil {
		p = &promised{said: make(map[string]bool)}
		j.of[key] = p
	}
	return p
}

func (j *journal) note(key, what string) {
	p := j.promised(key)
	p.said[what], p.last = true, what
	j.fresh[key] = true
}

// queueOf is the queue of a key.
func queueOf(key string) string { queue, _, _ := strings.Cut(key, "-"); return queue }

// verify opens the store and looks for what was promised of some messages.
func (j *journal) verify(keys []string) {
	j.t.Helper()
	e := place{vfs.OS{}, j.dir, diskengine.Config{Logger: quiet, MinFreeBytes: -1}, often}.open(j.t)
	defer func() {
		if err := e.Close(); err != nil {
			j.t.Error(err)
		}
	}()
	for _, key := range keys {
		p := j.of[key]
		if p.said["pushing-all"] {
			j.verifyAll(e, key, p)
			continue
		}
		state := j.state(e, key)
		found, want := state != engine.Gone, ""
		switch {
		case p.said["cancelled"] || p.said["acked"] || p.said["purged"]:
			if found {
				want = "gone"
			}
		case p.said["cancelling"] || p.said["acking"] || p.said["purging"] || !p.said["pushed"] && p.leased == 0: // it may be
		case !found:
			want = "there"
		case p.said["held"]:
			if state != engine.Leased {
				want = "leased to another process"
			}
		case p.last == "burying" || p.last == "redriving":
		case (state == engine.Dead) != (p.last == "buried"):
			want = "dead if it was buried"
		}
		if want != "" {
			j.t.Errorf("by round %d %s is to be %s, and is %s: %+v", j.round, key, want, state, p)
		}
	}
}

// verifyAll looks for messages that were pushed as one: all are there or none.
func (j *journal) verifyAll(e *diskengine.Engine, name string, p *promised) {
	j.t.Helper()
	at := strings.LastIndexByte(name, '/')
	n, err := strconv.Atoi(name[at+1:])
	if err != nil {
		j.t.Fatal(err)
	}
	found := 0
	for i := range n {
		if j.state(e, fmt.Sprint(name[:at], "/", i)) != engine.Gone {
			found++
		}
	}
	if found != n && (found != 0 || p.said["pushed-all"]) {
		j.t.Errorf("by round %d %d of %d are there of %s: %+v", j.round, found, n, name, p)
	}
}

// state is that of a message; Gone: there is none.
func (j *journal) state(e *diskengine.Engine, key string) engine.State {
	j.t.Helper()
	info, err := e.Get(j.t.Context(), engine.Ref{Queue: queueOf(key), Key: key})
	if errors.Is(err, engine.ErrNotFound) {
		return engine.Gone
	}
	if err != nil {
		j.t.Fatal(err)
	}
	return info.State
}
