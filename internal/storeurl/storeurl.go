// Package storeurl reads the URLs that name stores and the targets that messages are
// handed on to, such as disk:tarry-data?memory=1GiB or
// redis://user@host:6379/0?password_file=/run/secrets/redis.
//
// An engine makes a Reader, takes the parts and options out that it knows, and asks
// Done what was wrong:
//
//	r := storeurl.New(u)
//	cfg := new(Config)
//	r.Int("max_pending", &cfg.MaxPending)
//	r.Bytes("memory", &cfg.MemoryBytes)
//	if err := r.Done(); err != nil {
//		return nil, err
//	}
//
// An option that nobody took out is refused with the list of those that are known. No
// error repeats a value, since any part of a URL may be a piece of a password that was
// not escaped.
package storeurl

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// Reader reads the options of a URL and keeps the first thing wrong. Its methods take an
// option out, set what they are given a pointer to if the URL has the option, and
// report whether it has. A Reader is for one goroutine.
type Reader struct {
	url    *url.URL
	values url.Values // those not taken out yet
	known  []string
	err    error
}

// New reads a URL, which stays as it is.
func New(u *url.URL) *Reader {
	r := &Reader{url: u}
	var err error
	if r.values, err = url.ParseQuery(u.RawQuery); err != nil {
		r.Fail("the options behind ? are not well percent-encoded")
	}
	return r
}

// Fail notes what is wrong and what to do instead, unless something was noted before.
// It must not repeat what stands in the URL.
func (r *Reader) Fail(hint string, args ...any) {
	if r.err == nil {
		r.err = &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: fmt.Sprintf(hint, args...)}
	}
}

// Done returns an engine.ErrInvalid that says what was wrong, also an option that
// nobody has taken out, or nil.
func (r *Reader) Done() error {
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		slices.Sort(r.known)
		switch {
		case strings.Contains(name+r.url.RawQuery, "@"):
			r.Fail(escape) // the name may be part of a password
		case len(r.known) == 0:
			r.Fail("a %s: URL takes no options, so no %q", r.url.Scheme, name)
		default:
			r.Fail("a %s: URL has no option %q; it has %s", r.url.Scheme, name, strings.Join(r.known, ", "))
		}
	}
	return r.err
}

const escape = "in a password, escape / ? # and @"
