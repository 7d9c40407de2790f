package bench

import (
	"errors"
	"net/url"
)

// ErrNotEmpty is the error for a disk store in a directory that is not empty.
var ErrNotEmpty = errors.New("the directory of the store is not empty")

// ErrNoRecover is the error of recover if killing the process with the messages is impossible
// or would lose them.
var ErrNoRecover = errors.New("recover needs a durable store that is opened directly, such as disk:DIR or redis://HOST")

// ErrNoRaw is the error of push-raw for a store that is not a server.
var ErrNoRaw = errors.New("push-raw needs a server, such as http://127.0.0.1:8277")

// redact hides the password in a store's URL, and in a server's URL the token, which may be in
// place of the user.
func redact(store string) string {
	u, err := url.Parse(store)
	if err != nil {
		return "(not a URL)"
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		u.User = nil
	}
	return u.Redacted()
}
