package cli

import (
	"fmt"
	"strings"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

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
