package cli

import (
	"fmt"
	"strings"
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
