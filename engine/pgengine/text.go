package pgengine

import "strings"

// PostgreSQL's text takes no NUL, which a key may have: it is kept as two characters.
const (
	nul    = "\x00"
	escape = "\x10"
)

var (
	escapeKey   = strings.NewReplacer(escape, escape+escape, nul, escape+"0")
	unescapeKey = strings.NewReplacer(escape+escape, escape, escape+"0", nul)
)

// keyText is a key as its column has it.
func keyText(key string) string { return escapeKey.Replace(key) }

// keyOf is the key that a column has.
func keyOf(text string) string {
	if strings.Contains(text, escape) {
		return unescapeKey.Replace(text)
	}
	return text
}

// reasonText is a reason as its column has it: what is no text becomes a sign for that.
func reasonText(reason string) string {
	const unknown = "\uFFFD"
	return strings.ReplaceAll(strings.ToValidUTF8(reason, unknown), nul, unknown)
}
