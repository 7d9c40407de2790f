package diskengine

import (
	"fmt"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// onPebble reports whether a directory with these names is a store of an earlier release, on
// Pebble. It has a marker of its own, and Pebble's files in a directory.
func onPebble(names []string) bool {
	return slices.Contains(names, "TARRY") && slices.Contains(names, "store")
}

// pebbleError refuses a store on Pebble, and says how to bring over what waits in it.
func pebbleError(op, dir string) error {
	return &engine.Error{Op: op, Err: engine.ErrInvalid,
		Hint: fmt.Sprintf("%s is a store of an earlier tarry, on Pebble: serve it with that one, and copy what waits with this one: tarry copy http://127.0.0.1:8277 disk:NEW", dir)}
}
