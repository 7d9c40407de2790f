package access

import (
	"fmt"
	"strings"
)

// Scope is a set of rights.
type Scope uint8

// The rights of a token. None includes another but Admin, which is all of them.
const (
	// Push is to push, and to cancel, reschedule and rearm what was pushed.
	Push Scope = 1 << iota
	// Work is to lease, claim and settle.
	Work
	// Read is to look up, list and count, and to read settings and metrics.
	Read
	// Operate is to pause, resume, purge and redrive, to cancel and reschedule, and to
	// write settings.
	Operate
	// Admin is all of these, and what is to come.
	Admin

	// Known is what any valid token may.
	Known = Push | Work | Read | Operate | Admin
	// Anyone needs no token.
	Anyone = Known + 1
)

var scopeNames = []struct {
	scope Scope
	name  string
}{{Push, "push"}, {Work, "work"}, {Read, "read"}, {Operate, "operate"}, {Admin, "admin"}}

// ParseScope reads one of push, work, read, operate and admin.
func ParseScope(name string) (Scope, error) {
	for _, s := range scopeNames {
		if s.name == name {
			return s.scope, nil
		}
	}
	return 0, fmt.Errorf("unknown scope %q (known are push, work, read, operate and admin)", name)
}

// Names are the names of the rights.
func (s Scope) Names() (names []string) {
	for _, n := range scopeNames {
		if s&n.scope != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// String is the names with commas between.
func (s Scope) String() string { return strings.Join(s.Names(), ",") }

// has reports whether one of the rights wanted is among these.
func (s Scope) has(wanted Scope) bool { return s&Admin != 0 || s&wanted != 0 }
