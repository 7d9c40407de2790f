package pgengine

import "strings"

// PostgreSQL's text has no NUL, but a key may have: it is stored as two characters.
const (
	nul    = "\x00"
	escape = "\x10"
)

var (
	escapeKey   = strings.NewReplacer(escape, escape+escape, nul, escape+"0")
	unescapeKey = strings.NewReplacer(escape+escape, escape, escape+"0", nul)
)

// keyText encodes a key for its column.
func keyText(key string) string { return escapeKey.Replace(key) }

// keyOf decodes the key in a column.
func keyOf(text string) string {
	if strings.Contains(text, escape) {
		return unescapeKey.Replace(text)
	}
	return text
}
