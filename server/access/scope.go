package access

import (
	"fmt"
	"strings"
)

// Scope is a set of rights.
type Scope uint8

// The rights of a token. Only Admin includes others: all of them.
const (
	// Push is the right to push, and to cancel, reschedule and rearm messages.
	Push Scope = 1 << iota
	// Work is the right to lease, claim and settle.
	Work
	// Read is the right to look up, list and count, and to read settings and metrics.
	Read
	// Operate is the right to pause, resume, purge, redrive and drop, to cancel and
	// reschedule, and to write settings.
	Operate
	// Admin includes all rights, and those added in later versions.
	Admin

	// Known marks calls that any valid token may make.
	Known = Push | Work | Read | Operate | Admin
	// Anyone marks calls that need no token.
	Anyone = Known + 1
)

var scopeNames = []struct {
	scope Scope
	name  string
}{{Push, "push"}, {Work, "work"}, {Read, "read"}, {Operate, "operate"}, {Admin, "admin"}}

// ParseScope parses push, work, read, operate or admin.
func ParseScope(name string) (Scope, error) {
	for _, s := range scopeNames {
		if s.name == name {
			return s.scope, nil
		}
	}
	return 0, fmt.Errorf("unknown scope %q (known are push, work, read, operate and admin)", name)
}

// Names returns the names of the rights.
func (s Scope) Names() (names []string) {
	for _, n := range scopeNames {
		if s&n.scope != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// String returns the names, joined by commas.
func (s Scope) String() string { return strings.Join(s.Names(), ",") }

// has reports whether the scope includes one of the rights wanted.
func (s Scope) has(wanted Scope) bool { return s&Admin != 0 || s&wanted != 0 }
