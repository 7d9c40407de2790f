// Package storeurl parses the URLs of stores and of forwarding targets, such as
// disk:tarry-data?memory=1GiB or redis://user@host:6379/0?password_file=/run/secrets/redis.
//
// An engine makes a Reader, takes the parts and options that it knows, and calls Done for
// the error:
//
//	r := storeurl.New(u)
//	cfg := new(Config)
//	r.Int("max_pending", &cfg.MaxPending)
//	r.Bytes("memory", &cfg.MemoryBytes)
//	if err := r.Done(); err != nil {
//		return nil, err
//	}
//
// Done rejects options that were not taken, and lists the known ones. No error repeats a
// value, since any part of a URL may be part of an unescaped password.
package storeurl

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// Reader reads the options of a URL and keeps the first error. A method that takes an option
// stores it through the given pointer if the URL has it, and reports whether it did. A Reader
// is not safe for concurrent use.
type Reader struct {
	url    *url.URL
	values url.Values // not taken yet
	known  []string
	err    error
}

// New returns a Reader of u, which it does not change.
func New(u *url.URL) *Reader {
	r := &Reader{url: u}
	var err error
	if r.values, err = url.ParseQuery(u.RawQuery); err != nil {
		r.Fail("the options behind ? are not well percent-encoded")
	}
	return r
}

// Fail records what is wrong and what to do instead, unless there is an error already. The
// text must not repeat parts of the URL.
func (r *Reader) Fail(hint string, args ...any) {
	if r.err == nil {
		r.err = &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: fmt.Sprintf(hint, args...)}
	}
}

// Done returns the first error, or an error for an option that was not taken; else nil. The
// errors are engine.ErrInvalid.
func (r *Reader) Done() error {
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		slices.Sort(r.known)
		switch {
		case strings.Contains(name+r.url.RawQuery, "@"):
			r.Fail(escape) // the name may be part of a password
		case len(r.known) == 0:
			r.Fail("the scheme %s takes no options, so no %q", r.url.Scheme, name)
		default:
			r.Fail("the scheme %s has no option %q; it has %s", r.url.Scheme, name, strings.Join(r.known, ", "))
		}
	}
	return r.err
}

const escape = "in a password, escape / ? # and @"
