package cli

import (
	"fmt"
	"strings"
)

// copied is what came of copying a queue.
type copied struct {
	Queue   string `json:"queue"`
	Outcome string `json:"outcome"`

	Copied   int64 `json:"copied"`   // scheduled and ready messages
	Kept     int64 `json:"kept"`     // TO knew their keys, and they are left as they are there
	Refused  int64 `json:"refused"`  // by TO, each for itself
	Expired  int64 `json:"expired"`  // not copied: they expire before they are due
	Unkeyed  int64 `json:"unkeyed"`  // of those copied: have no key
	Begun    int64 `json:"begun"`    // of those copied: had attempts behind them, which no longer count
	Stripped int64 `json:"stripped"` // of those copied: lost what TO has not

	Buried int64 `json:"buried"` // dead messages copied

	Settings string `json:"settings"` // "copied", "kept": TO had some, "left": not asked for, or TO has none; "": there are none
	Pause    string `json:"pause"`    // likewise

	// What FROM still holds beside.
	Leased   int64 `json:"leased"`
	Dead     int64 `json:"dead"`
	Finished int64 `json:"finished"` // remembered keys
}

// add sums up.
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
}

func (c *copied) cells() []any {
	return []any{c.Queue, c.Copied, c.Kept, c.Refused, c.Expired, c.Buried, orDash(c.Settings), orDash(c.Pause), orDash(c.left())}
}

// left says what was not copied.
func (c *copied) left() string {
	return counts(c.Leased, "leased", c.Dead, "dead", c.Finished, "remembered")
}

// counts joins numbers and what they count, in pairs, but for what there is none of.
func counts(pairs ...any) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		if n := pairs[i].(int64); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, pairs[i+1]))
		}
	}
	return strings.Join(parts, ", ")
}
