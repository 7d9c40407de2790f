package webhook

import (
	"net/http"
	"strings"
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
	for i := range len(name) {
		c := name[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return name != ""
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
