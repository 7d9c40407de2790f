package forward

import (
	"net/url"

	"github.com/tarryhq/tarry/internal/schemes"
)

// Opener makes the target of a URL without connecting. The options are complete and checked,
// and the opener may keep them.
type Opener func(u *url.URL, o *Options) (Target, error)

var openers schemes.Openers[Opener]

// Register makes a kind of target available to Open under a URL scheme. Packages of targets
// call it from init. It panics if the scheme is registered already.
func Register(scheme string, open Opener) { openers.Register("target", scheme, open) }

// Schemes returns the registered URL schemes, sorted.
func Schemes() []string { return openers.Names() }

// Open returns the target of a URL, such as "https://shop.example/paid", without connecting.
// The package of the target must be imported. Errors are a *tarry.Error that wraps
// tarry.ErrInvalid, says what to do, and contains no password.
func Open(rawURL string, o *Options) (Target, error) {
	full, err := o.Complete()
	if err != nil {
		return nil, err
	}
	u, open, hint := openers.Find("target", "https://shop.example/paid", rawURL)
	if hint != "" {
		return nil, invalid("%s", hint)
	}
	return open(u, full)
}
