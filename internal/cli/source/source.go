package source

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"

	"github.com/tarryhq/tarry/engine"
)

// page is how many entries Next reads at a time, about.
const page = 500

// Entry is one delayed message of another system.
type Entry struct {
	ID             string // its name there
	engine.Message        // the push that makes the same message here, without a content type
	Err            error  // why there can be none; nil: there can

	New bool // pushing it made a new message; for the caller to set
	was any  // what Remove needs
}

// Source is where messages are delayed today. It is not safe for concurrent use.
type Source interface {
	// Name names it for people: a queue, a set or a table.
	Name() string

	// Next returns some further entries, in no order, and none at the end. What is in the
	// source all the time is returned at least once.
	Next(ctx context.Context) ([]Entry, error)

	// Remove removes entries that are still as Next returned them, and reports for each
	// whether it did.
	Remove(ctx context.Context, entries []Entry) (removed []bool, err error)
}

// keyFor returns name if it may be a key, else a digest of it.
func keyFor(name string) string {
	if engine.CheckKey("", "", name) == nil {
		return name
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
}

// unreached returns the error of connecting to FROM.
func unreached(u *url.URL, err error) error {
	return &engine.Error{Op: "open", Err: fmt.Errorf("%w: %v", engine.ErrUnavailable, err), Hint: "check that FROM runs at " + u.Host}
}
