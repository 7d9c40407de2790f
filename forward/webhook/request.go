package webhook

import (
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward/internal/link"
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
	if !link.IsToken(name) {
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
			return nil, link.Invalid("secret %d of %d is not whsec_ and %d to %d random bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)",
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

const (
	// MaxQuoted is how many bytes of an answer's body an error quotes.
	MaxQuoted = 512

	// maxDrained is how much of an answer's body is read to reuse the connection; if there
	// is more, the connection is closed.
	maxDrained = 64 << 10

	// bodyPatience is how long an answer's body may take after its status.
	bodyPatience = time.Second
)

// verdict returns the handler's result for an answer.
func (t *Target) verdict(m *tarry.Message[[]byte], res *http.Response, now time.Time) error {
	if res.StatusCode/100 == 2 {
		if res.ContentLength != 0 {
			_, _ = io.CopyN(io.Discard, res.Body, maxDrained)
		}
		return nil
	}
	err := t.answerError(res)
	if res.StatusCode == http.StatusGone {
		return tarry.Bury(err)
	}
	if after, ok := retryAfter(res.Header.Get("Retry-After"), now); ok {
		return tarry.RetryIn(max(min(after, t.maxRetryAfter), m.RetryDelay(m.Attempt)), err)
	}
	return err
}

// answerError returns the error for an answer other than 2xx.
func (t *Target) answerError(res *http.Response) error {
	status := strings.TrimSpace(strconv.Itoa(res.StatusCode) + " " + http.StatusText(res.StatusCode))
	switch place, err := res.Location(); {
	case res.StatusCode/100 != 3:
	case err != nil:
		return fmt.Errorf("%s answered %s without a location", t.name, status)
	default:
		// Parts that may be confidential are left out.
		place.User, place.RawQuery, place.ForceQuery, place.Fragment = nil, "", false, ""
		return fmt.Errorf("%s answered %s; redirects are not followed: the webhook's URL should be %s", t.name, status, printable(place.String()))
	}
	// The body of 101 is the connection itself, and reading it would ignore the context.
	if res.StatusCode < 200 {
		return fmt.Errorf("%s answered %s", t.name, status)
	}
	body := make([]byte, MaxQuoted)
	n, _ := io.ReadFull(res.Body, body)
	_, _ = io.CopyN(io.Discard, res.Body, maxDrained)
	if quote := printable(string(body[:n])); quote != "" {
		return fmt.Errorf("%s answered %s: %s", t.name, status, quote)
	}
	return fmt.Errorf("%s answered %s", t.name, status)
}

// printable returns the printable characters of s, at most MaxQuoted bytes on one line.
func printable(s string) string {
	var b strings.Builder
	space := false
	for _, r := range s {
		if !unicode.IsPrint(r) || r == ' ' || r == unicode.ReplacementChar {
			space = b.Len() > 0
			continue
		}
		if b.Len()+1+len(string(r)) > MaxQuoted {
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// retryAfter parses Retry-After: seconds, or an HTTP date. A past date is 0.
func retryAfter(v string, now time.Time) (_ time.Duration, ok bool) {
	if v != "" && strings.Trim(v, "0123456789") == "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil || n > math.MaxInt64/uint64(time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(n) * time.Second, true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}
