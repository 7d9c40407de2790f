package codec

import (
	"encoding/binary"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// AppendContent writes a message's content: its type; a Uvarint count of headers, then their
// names and values; and the body, which takes the rest.
func AppendContent(b []byte, c *engine.Content) []byte {
	b = AppendString(b, c.ContentType)
	b = binary.AppendUvarint(b, uint64(len(c.Headers)))
	for _, h := range c.Headers {
		b = AppendString(AppendString(b, h.Name), h.Value)
	}
	return append(b, c.Body...)
}

// ContentSize is about how many bytes AppendContent writes, and never fewer.
func ContentSize(c *engine.Content) int {
	n := 2*binary.MaxVarintLen32 + len(c.ContentType) + len(c.Body)
	for _, h := range c.Headers {
		n += 2*binary.MaxVarintLen32 + len(h.Name) + len(h.Value)
	}
	return n
}

// Content reads what AppendContent wrote, to the end.
func (r *Reader) Content() engine.Content {
	c := r.SharedContent()
	c.Body = slices.Clone(c.Body)
	return c
}

// SharedContent is Content with a body that is part of B.
func (r *Reader) SharedContent() (c engine.Content) {
	c.ContentType = r.String()
	if n := r.Count(2); n > 0 {
		c.Headers = make([]engine.Header, n)
		for i := range c.Headers {
			c.Headers[i] = engine.Header{Name: r.String(), Value: r.String()}
		}
	}
	if len(r.B) > 0 {
		c.Body, r.B = r.B, nil
	}
	return c
}
