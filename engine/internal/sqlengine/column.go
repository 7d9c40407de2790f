package sqlengine

import (
	"encoding/json"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// How columns store values, in every database.

// OrNever returns the instant in a column in which NULL means never.
func OrNever(ms *int64) int64 {
	if ms == nil {
		return never
	}
	return *ms
}

// Numbers converts ids for columns.
func Numbers(ids []engine.ID) []int64 {
	n := make([]int64, len(ids))
	for i, id := range ids {
		n[i] = int64(id)
	}
	return n
}

// EncodeSettings encodes settings as JSON; nil: none is set.
func EncodeSettings(s *engine.Settings) []byte {
	if s.Unset() {
		return nil
	}
	text, _ := json.Marshal(s) // checked numbers always succeed
	return text
}

// DecodeSettings decodes settings.
func DecodeSettings(text []byte) (s engine.Settings, err error) {
	if text != nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// MetaOf encodes a content without its body; nil: only the body is set.
func MetaOf(c *engine.Content) []byte {
	if c.ContentType == "" && len(c.Headers) == 0 {
		return nil
	}
	return codec.AppendContent(nil, &engine.Content{ContentType: c.ContentType, Headers: c.Headers})
}

// Decode sets what columns store encoded. The row keeps meta.
func (r *Row) Decode(expires *int64, nonce, policy, meta []byte) error {
	r.Expires = OrNever(expires)
	if len(nonce) == len(codec.Nonce{}) {
		r.Nonce = new(codec.Nonce(nonce))
	}
	p := codec.Reader{B: policy}
	r.Policy = p.Policy()
	if meta == nil || p.Err != nil {
		return p.Err
	}
	p = codec.Reader{B: meta}
	c := p.Content()
	r.Content.ContentType, r.Content.Headers = c.ContentType, c.Headers
	return p.Err
}
