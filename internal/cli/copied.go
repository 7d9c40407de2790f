package cli

import (
	"fmt"
	"strings"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// copied is the result of copying a queue.
type copied struct {
	Queue   string `json:"queue"`
	Outcome string `json:"outcome"`

	Copied   int64 `json:"copied"`   // scheduled and ready messages
	Kept     int64 `json:"kept"`     // TO knew their keys, and keeps its own
	Refused  int64 `json:"refused"`  // each refused by TO
	Expired  int64 `json:"expired"`  // not copied: they expire before they are due
	Unkeyed  int64 `json:"unkeyed"`  // of those copied: without a key
	Begun    int64 `json:"begun"`    // of those copied: had used attempts, which no longer count
	Stripped int64 `json:"stripped"` // of those copied: lost what TO does not support

	Buried int64 `json:"buried"` // dead messages copied

	Settings string `json:"settings"` // "copied"; "kept": TO has its own; "left": not asked for, or TO has no settings; "": FROM has none
	Pause    string `json:"pause"`    // the same

	// What FROM still holds that was not copied.
	Leased   int64 `json:"leased"`
	Dead     int64 `json:"dead"`
	Finished int64 `json:"finished"` // remembered keys
	History  int64 `json:"history"`  // finished messages listed
}

// add adds the counts of q.
func (c *copied) add(q *copied) {
	c.Copied += q.Copied
	c.Kept += q.Kept
	c.Refused += q.Refused
	c.Expired += q.Expired
	c.Unkeyed += q.Unkeyed
	c.Begun += q.Begun
	c.Stripped += q.Stripped
	c.Buried += q.Buried
	c.Leased += q.Leased
	c.Dead += q.Dead
	c.Finished += q.Finished
	c.History += q.History
}

func (c *copied) cells() []any {
	return []any{c.Queue, c.Copied, c.Kept, c.Refused, c.Expired, c.Buried, orDash(c.Settings), orDash(c.Pause), orDash(c.left())}
}

// left says what was not copied.
func (c *copied) left() string {
	return counts(c.Leased, "leased", c.Dead, "dead", c.Finished, "remembered", c.History, "finished")
}

// counts joins pairs of a number and what it counts, leaving out zeros.
func counts(pairs ...any) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		if n := pairs[i].(int64); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, pairs[i+1]))
		}
	}
	return strings.Join(parts, ", ")
}

// able refuses a copy if FROM cannot be listed, or if TO does not support all that messages
// may have.
func (c *copier) able() error {
	from := c.from.Capabilities()
	if !from.List || !from.Range || !from.Count {
		return &engine.Error{Op: "copy", Err: tarry.ErrUnsupported, Hint: "FROM cannot be read: the engine " + from.Name + " has no lists of what waits"}
	}
	if c.to == nil {
		return nil
	}
	to := c.to.Capabilities()
	if !to.Count && !c.flags.merge {
		return usagef("--merge copies all the same; what is there stays", "the engine %s cannot tell whether TO holds something", to.Name)
	}
	if lost := losses(&from, &to); len(lost) > 0 && !c.flags.lossy {
		return &engine.Error{Op: "copy", Err: tarry.ErrUnsupported,
			Hint: fmt.Sprintf("the engine %s has no %s; --lossy copies without", to.Name, strings.Join(lost, ", "))}
	}
	return nil
}

// losses returns what messages may have in one store but not in the other.
func losses(from, to *tarry.Capabilities) (lost []string) {
	for _, has := range []struct {
		from, to bool
		what     string
	}{
		{from.Keys, to.Keys, "keys"},
		{from.Priority, to.Priority, "priorities"},
		{from.Expiry, to.Expiry, "expire_after"},
		{from.Remember, to.Remember, "remember"},
	} {
		if has.from && !has.to {
			lost = append(lost, has.what)
		}
	}
	return lost
}

// strip removes from a message what TO does not support, and reports whether anything was
// lost.
func (c *copier) strip(m *tarry.Draft) bool {
	if c.to == nil {
		return false
	}
	caps := c.to.Capabilities()
	lost := m.Key != "" && !caps.Keys
	if lost {
		m.Key, m.OnConflict = "", tarry.Reject
	}
	return stripTerms(&m.Terms, caps) || lost
}

// stripTerms does the same for the terms of a message or the defaults of a queue.
func stripTerms(t *tarry.Terms, caps tarry.Capabilities) (lost bool) {
	if t.Priority != nil && !caps.Priority {
		lost = *t.Priority != tarry.DefaultPriority
		t.Priority = nil
	}
	if t.ExpireAfter != 0 && !caps.Expiry {
		lost = lost || t.ExpireAfter > 0
		t.ExpireAfter = 0
	}
	if t.Remember != 0 && !caps.Remember {
		lost = lost || t.Remember > 0
		t.Remember = 0
	}
	if !caps.Isolate {
		t.Isolate = nil
	}
	return lost
}

// summary says in one line what was copied and what was not.
func (c *copier) summary() string {
	t, did := &c.total, "copied"
	if c.flags.dryRun {
		did = "would copy"
	}
	line := fmt.Sprintf("%s %s of %s", did, counted(t.Copied, "message"), counted(c.queues, "queue"))
	if what := counts(t.Buried, "dead copied", t.Kept, "kept as TO has them", t.Begun, "begin again with attempt 0", t.Stripped, "lost what TO has not", t.Expired, "expire before they are due"); what != "" {
		line += "; " + what
	}
	if left := t.left(); left != "" {
		line += "; left in FROM: " + left
	}
	return line
}
