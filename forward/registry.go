package forward

import (
	"net/url"
	"strings"

	"github.com/tarryhq/tarry/internal/schemes"
)

// Opener makes the target that u names. It does not connect. Options are complete and
// checked, and the opener's to keep.
type Opener func(u *url.URL, o *Options) (Target, error)

var openers schemes.Openers[Opener]

// Register makes a kind of target available to Open under a URL scheme. Its package calls
// it from init; a scheme registered twice panics.
func Register(scheme string, open Opener) { openers.Register("target", scheme, open) }

// Schemes returns the registered URL schemes, sorted.
func Schemes() []string { return openers.Names() }

// Open returns the target that a URL names, such as "https://shop.example/paid". Its
// package must be imported. Open does not connect. Errors are a *tarry.Error that wraps
// tarry.ErrInvalid and says what to do, with no password in it.
func Open(rawURL string, o *Options) (Target, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The parse error repeats the URL, which may hold a password.
		return nil, invalid("the target is not a URL; an example is https://shop.example/paid; percent-encode what is neither a letter nor a digit in a password")
	}
	full, err := o.Complete()
	if err != nil {
		return nil, err
	}
	open, ok := openers.Of(u.Scheme)
	if !ok {
		return nil, invalid("no target has the scheme %q; known here: %s; programs import the target's package",
			u.Scheme, strings.Join(Schemes(), ", "))
	}
	return open(u, full)
}
