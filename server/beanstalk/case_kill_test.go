package beanstalk_test

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TestKill kills the server in the middle of its work, again and again: every job that was INSERTED is there,
// none that was DELETED, and what was reserved is ready.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	told := &told{inserted: make(map[string]bool), deleting: make(map[string]bool), deleted: make(map[string]bool)}
	for round := range 4 {
		at := startProcess(t, dir)
		told.check(t, at.dial(t))
		told.enough = told.answers + 100*(round+1)
		told.full = make(chan struct{})
		var working sync.WaitGroup
		for i := range 6 {
			c := at.dial(t)
			working.Go(func() { told.work(c, i) })
		}
		<-told.full
		at.kill()
		working.Wait()
	}
	told.check(t, startProcess(t, dir).dial(t))
	if len(told.deleted) == 0 || told.held == 0 {
		t.Errorf("%d jobs were deleted, %d held: that shows nothing", len(told.deleted), told.held)
	}
}

// told is what the server has told.
type told struct {
	mu       sync.Mutex
	inserted map[string]bool // ids of jobs
	deleting map[string]bool // their delete was sent
	deleted  map[string]bool
	held     int
	unsure   int // puts that were sent and not answered

	answers, enough int
	full            chan struct{} // closed when there were enough answers
}

// note notes an answer.
func (w *told) note(how func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how()
	if w.answers++; w.answers == w.enough {
		close(w.full)
	}
}

// work puts jobs, some of them in one piece, and reserves, deletes and holds others until the server is gone.
func (w *told) work(c *conn, i int) {
	for n := 0; ; n++ {
		commands := strings.Repeat("put 7 0 3600 4\r\nbody\r\n", 1+n%3)
		if i%2 == 1 && n%2 == 1 {
			commands = "reserve-with-timeout 0\r\n"
		}
		puts := strings.Count(commands, "put")
		w.mu.Lock()
		w.unsure += puts
		w.mu.Unlock()
		if _, err := io.WriteString(c, commands); err != nil {
			return
		}
		for range puts {
			id, ok := strings.CutPrefix(c.read(patience), "INSERTED ")
			if !ok {
				return
			}
			w.note(func() { w.inserted[id] = true; w.unsure-- })
		}
		if puts > 0 {
			continue
		}
		words := strings.Fields(c.read(patience))
		switch {
		case len(words) == 0 || words[0] != "RESERVED" && words[0] != "TIMED_OUT":
			return
		case words[0] == "TIMED_OUT":
		case n%4 == 1:
			w.note(func() { w.held++ })
		default:
			w.note(func() { w.deleting[words[1]] = true })
			if _, err := fmt.Fprintf(c, "delete %s\r\n", words[1]); err != nil || c.read(patience) != "DELETED" {
				return
			}
			w.note(func() { w.deleted[words[1]] = true })
		}
	}
}

// check compares what is there with what was told.
func (w *told) check(t *testing.T, c *conn) {
	t.Helper()
	ready := 0
	for id := range w.inserted {
		state := yaml(c.cmd("stats-job %s", id))["state"]
		switch {
		case w.deleted[id] && state != "":
			t.Errorf("job %s was deleted, and is %s", id, state)
		case !w.deleted[id] && !w.deleting[id] && state != "ready":
			t.Errorf("job %s was put, and is %q, not ready", id, state)
		}
		if state == "ready" {
			ready++
		}
	}
	n, _ := strconv.Atoi(yaml(c.cmd("stats"))["current-jobs-ready"])
	if n < ready || n > ready+w.unsure {
		t.Errorf("%d jobs are ready, not %d to %d", n, ready, ready+w.unsure)
	}
}
