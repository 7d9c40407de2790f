package engine

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/tarryhq/tarry/internal/names"
)

// Opener opens the engine that u names. It fails with a clear error when the store is not
// reachable or the URL has unknown parts.
type Opener func(ctx context.Context, u *url.URL) (Engine, error)

var (
	openers    names.Openers[Opener]
	migrations names.Openers[MigrationsOpener]
)

// Register makes an engine available to Open under a URL scheme. Engine packages call it
// from init. It panics if the scheme is registered already.
func Register(scheme string, open Opener) { openers.Register("engine", scheme, open) }

// Schemes returns the registered URL schemes, sorted.
func Schemes() []string { return openers.Names() }

// Open opens the engine that a URL names, such as "disk:tarry-data" or "mem:".
// Its package must be imported.
func Open(ctx context.Context, rawURL string) (Engine, error) {
	u, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	open, ok := openers.Of(u.Scheme)
	if !ok {
		return nil, unknown(u.Scheme)
	}
	return open(ctx, u)
}

func parse(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The parse error repeats the URL, which may hold a password.
		return nil, &Error{Op: "open", Err: ErrInvalid, Hint: "the store is not a URL; an example is disk:tarry-data; " + escapeAdvice}
	}
	return u, nil
}

const escapeAdvice = "percent-encode anything in a password but letters and digits, or put it in a file and set password_file"

func unknown(scheme string) error {
	if scheme == "" {
		return &Error{Op: "open", Err: ErrInvalid, Hint: "the store has no scheme; for a directory put disk: before it, as in disk:tarry-data"}
	}
	return &Error{Op: "open", Err: ErrInvalid, Hint: fmt.Sprintf(
		"no engine has the scheme %q; known here: %s; a program must import the engine's package", scheme, strings.Join(Schemes(), ", "))}
}
