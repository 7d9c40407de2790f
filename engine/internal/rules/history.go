package rules

import "github.com/tarryhq/tarry/engine"

// ListedFrom returns the earliest end of finished messages that a history lists at ms; Never:
// it lists none.
func ListedFrom(h engine.History, ms int64) int64 {
	if h.Keep <= 0 {
		return Never
	}
	return ms - Millis(h.Keep) + 1
}
