package forward

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// Header is a name and a value sent with a message.
type Header = engine.Header

// Headers that describe a message to its target.
const (
	HeaderID      = "Tarry-Id"      // decimal; the same in each attempt
	HeaderQueue   = "Tarry-Queue"   //
	HeaderKey     = "Tarry-Key"     // omitted if the message has none
	HeaderDue     = "Tarry-Due"     // RFC 3339 in UTC with three decimals
	HeaderAttempt = "Tarry-Attempt" // the first is 1
)

var ours = [...]string{HeaderID, HeaderQueue, HeaderKey, HeaderDue, HeaderAttempt}

const dueLayout = "2006-01-02T15:04:05.000Z07:00"

// Metadata are the headers sent with a message: tarry's own, then the message's, then
// Options.Headers. A message's header is left out if tarry or Options.Headers has the same
// name. The content type is not included: each target has its own place for it. o may be
// nil.
func Metadata(m *tarry.Message[[]byte], o *Options) []Header {
	var added []Header
	if o != nil {
		added = o.Headers
	}
	hs := make([]Header, 0, len(ours)+len(m.Headers)+len(added))
	hs = append(hs,
		Header{Name: HeaderID, Value: m.ID.String()},
		Header{Name: HeaderQueue, Value: m.Queue})
	if m.Key != "" {
		hs = append(hs, Header{Name: HeaderKey, Value: m.Key})
	}
	hs = append(hs,
		Header{Name: HeaderDue, Value: m.Due.UTC().Format(dueLayout)},
		Header{Name: HeaderAttempt, Value: strconv.FormatUint(uint64(m.Attempt), 10)})
	for _, h := range m.Headers {
		if !own(h.Name) && !named(added, h.Name) {
			hs = append(hs, h)
		}
	}
	return append(hs, added...)
}

// own reports whether the name is one of tarry's own headers.
func own(name string) bool {
	return slices.ContainsFunc(ours[:], func(o string) bool { return strings.EqualFold(o, name) })
}
