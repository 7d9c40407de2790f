// Package cause reduces errors that differ only by numbers, ids, addresses and times to a
// common form, so that dead messages can be grouped by error.
package cause

import (
	"regexp"
	"strings"
)

var (
	uuids  = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)
	words  = regexp.MustCompile(`[0-9A-Za-z]*[0-9][0-9A-Za-z]*`)
	joined = regexp.MustCompile(`#([-.:/_+]+#)+`)
)

// Max is how many bytes of an error are used; the rest is cut. No cause is longer.
const Max = 300

// Of returns an error's text with # in place of each word with digits, such as numbers, ids,
// addresses and times. Such words that are joined by punctuation become one #. Of is
// idempotent.
func Of(text string) string {
	if len(text) > Max {
		text = strings.ToValidUTF8(text[:Max], "")
	}
	text = uuids.ReplaceAllLiteralString(text, "#")
	text = words.ReplaceAllLiteralString(text, "#")
	return joined.ReplaceAllLiteralString(text, "#")
}
