package link

import (
	"strings"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
)

const contentType = "Content-Type"

// ContentType returns the content type to send: that of the headers of o, else the
// message's.
func ContentType(m *tarry.Message[[]byte], o *forward.Options) string {
	for _, h := range o.Headers {
		if IsContentType(h.Name) {
			return h.Value
		}
	}
	return m.ContentType
}

// IsContentType reports whether a header is the content type, which is sent separately.
func IsContentType(name string) bool { return strings.EqualFold(name, contentType) }
