// Package cause tells what errors have in common that differ only by numbers, ids,
// addresses and times, so that messages can be grouped by what they died of.
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

// Max is how many bytes of an error are looked at; the rest is cut. No cause is longer.
const Max = 300

// Of is an error with # for all that differs from one time that it happens to the next:
// words with digits in them, as numbers, ids, addresses and times have, and what joins
// them. Of a cause it is that cause.
func Of(text string) string {
	if len(text) > Max {
		text = strings.ToValidUTF8(text[:Max], "")
	}
	text = uuids.ReplaceAllLiteralString(text, "#")
	text = words.ReplaceAllLiteralString(text, "#")
	return joined.ReplaceAllLiteralString(text, "#")
}
