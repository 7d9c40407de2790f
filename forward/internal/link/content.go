package link

import (
	"strings"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
)

const contentType = "Content-Type"

// ContentType is the content type with which a message goes: that of the headers of o,
// else its own.
func ContentType(m *tarry.Message[[]byte], o *forward.Options) string {
	for _, h := range o.Headers {
		if IsContentType(h.Name) {
			return h.Value
		}
	}
	return m.ContentType
}

// IsContentType says of a header's name that its value has another place.
func IsContentType(name string) bool { return strings.EqualFold(name, contentType) }
