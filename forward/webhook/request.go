package webhook

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/tarryhq/tarry"
)

// The headers of the Standard Webhooks scheme, in the form of http.Header.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// reserved are the headers that HTTP or the sender sets.
var reserved = map[string]bool{
	"Connection":        true,
	"Content-Length":    true,
	"Content-Type":      true,
	"Expect":            true,
	"Host":              true,
	"Http2-Settings":    true,
	"Keep-Alive":        true,
	"Te":                true,
	"Trailer":           true,
	"Transfer-Encoding": true,
	"Upgrade":           true,
}

// headerName returns the name in the form of http.Header, or "" if no message may set it.
func headerName(name string) string {
	if !isToken(name) {
		return ""
	}
	name = http.CanonicalHeaderKey(name)
	// Receivers that turn headers into variables (CGI, WSGI) do not distinguish these.
	heard := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	if reserved[heard] || strings.HasPrefix(heard, "Webhook-") || strings.HasPrefix(heard, "Proxy-") ||
		heard != name && strings.HasPrefix(heard, "Tarry-") {
		return ""
	}
	return name
}

// isToken reports whether HTTP allows the name for a header.
func isToken(name string) bool {
	const known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	return name != "" && strings.Trim(name, known) == ""
}

// headerValue returns a value of printable ASCII without surrounding spaces unchanged. In any
// other value it percent-encodes each byte that is not visible, and the percent sign.
func headerValue(v string) string {
	plain := v == strings.Trim(v, " ")
	for i := 0; plain && i < len(v); i++ {
		plain = v[i] >= ' ' && v[i] <= '~'
	}
	if plain {
		return v
	}
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, 3*len(v))
	for i := range len(v) {
		if c := v[i]; c > ' ' && c <= '~' && c != '%' {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// signer signs with each of its secrets.
type signer []*standardwebhooks.Webhook

// The length of a secret in bytes, by the scheme.
const (
	minSecret = 24
	maxSecret = 64
)

func newSigner(secrets []string) (signer, error) {
	var s signer
	for i, secret := range secrets {
		encoded, ok := strings.CutPrefix(secret, "whsec_")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
			return nil, invalid("secret %d of %d is not whsec_ and %d to %d random bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)",
				i+1, len(secrets), minSecret, maxSecret)
		}
		w, err := standardwebhooks.NewWebhookRaw(key)
		if err != nil {
			return nil, err
		}
		s = append(s, w)
	}
	return s, nil
}

// sign sets the headers of the scheme.
func (s signer) sign(h http.Header, id string, now time.Time, body []byte) error {
	h[headerID] = []string{id}
	h[headerTimestamp] = []string{strconv.FormatInt(now.Unix(), 10)}
	if len(s) == 0 {
		return nil
	}
	signatures := make([]string, len(s))
	for i, w := range s {
		var err error
		if signatures[i], err = w.Sign(id, now, body); err != nil {
			return err
		}
	}
	h[headerSignature] = []string{strings.Join(signatures, " ")}
	return nil
}

// eventID returns an id that is the same in each attempt, and differs between messages even if
// a store restarts its ids. The scheme separates the signed parts with full stops, so the id
// has colons instead. A queue's name has no colon, so ids stay distinct.
func eventID(m *tarry.Message[[]byte]) string {
	return strings.ReplaceAll(m.Queue, ".", ":") + "/" + m.ID.String() + "/" + strconv.FormatInt(m.Created.UnixMilli(), 10)
}
