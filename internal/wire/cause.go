package wire

import (
	"regexp"
	"strings"
)

var (
	uuids  = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)
	digits = regexp.MustCompile(`[0-9A-Za-z]*[0-9][0-9A-Za-z]*`)
	joined = regexp.MustCompile(`#([-.:/_+]+#)+`)
)

// MaxCause is how many bytes of an error are used; the rest is cut. No cause is longer.
const MaxCause = 300

// Cause reduces errors that differ only by numbers, ids, addresses and times to a common
// form, so that dead messages can be grouped by error. It returns the text with # in place of each word with digits, such as numbers, ids,
// addresses and times. Such words that are joined by punctuation become one #. Cause is
// idempotent.
func Cause(text string) string {
	if len(text) > MaxCause {
		text = strings.ToValidUTF8(text[:MaxCause], "")
	}
	text = uuids.ReplaceAllLiteralString(text, "#")
	text = digits.ReplaceAllLiteralString(text, "#")
	return joined.ReplaceAllLiteralString(text, "#")
}
