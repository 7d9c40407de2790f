package bench

import (
	"errors"
	"net/url"
)

// ErrNotEmpty refuses a disk store whose directory holds something.
var ErrNotEmpty = errors.New("the directory of the store is not empty")

// ErrNoRecover refuses recover where the process with the messages cannot be
// killed, or forgets them when it is.
var ErrNoRecover = errors.New("recover needs a durable store that is opened directly, such as disk:DIR or redis://HOST")

// ErrNoRaw refuses push-raw where nothing speaks HTTP.
var ErrNoRaw = errors.New("push-raw needs a server, such as http://127.0.0.1:8277")

// redact hides the password of a store's URL, and of a server's the token, which may stand
// where the user does.
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
