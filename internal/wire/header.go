package wire

import "github.com/tarryhq/tarry/engine"

// appendHeaders appends headers as an object, in the order of each name's first header. A
// repeated name has an array of values. With exact, headers with a repeated name become an
// array of pairs instead, which keeps their order.
func appendHeaders(b []byte, hs []engine.Header, exact bool) []byte {
	if exact && repeated(hs) {
		return appendAll(b, hs, func(b []byte, h *engine.Header) []byte {
			b = AppendString(append(b, '['), h.Name)
			return append(AppendString(append(b, ','), h.Value), ']')
		})
	}
	b = append(b, '{')
	for i, h := range hs {
		if hasHeader(hs[:i], h.Name) {
			continue
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, h.Name)
		b = append(b, ':')
		if !hasHeader(hs[i+1:], h.Name) {
			b = AppendString(b, h.Value)
			continue
		}
		b = append(b, '[')
		b = AppendString(b, h.Value)
		for _, more := range hs[i+1:] {
			if more.Name == h.Name {
				b = AppendString(append(b, ','), more.Value)
			}
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func repeated(hs []engine.Header) bool {
	for i, h := range hs {
		if hasHeader(hs[:i], h.Name) {
			return true
		}
	}
	return false
}

func hasHeader(hs []engine.Header, name string) bool {
	for _, h := range hs {
		if h.Name == name {
			return true
		}
	}
	return false
}

// headers reads headers from an object of strings, in the order of the text. A repeated
// name has an array of strings. Instead of the object there may be an array of pairs of name
// and value, which can have any order.
func (r *Reader) headers(name string) []engine.Header {
	if r.err == nil && r.dec.PeekKind() == '[' {
		return r.pairs(name)
	}
	if !r.open(name, '{') {
		return nil
	}
	var all []engine.Header
	for r.more() {
		raw, ok := r.value()
		if !ok {
			return nil
		}
		h := string(r.unquote(raw))
		switch {
		case len(all) > engine.MaxHeaders && !r.lenient:
			r.skip() // refused as too many further up
		case hasHeader(all, h):
			r.Wrong("%s: %s is given twice", name, engine.Clip(h))
			r.skip()
		case r.err == nil && r.dec.PeekKind() == '[':
			r.texts(name+"."+engine.Clip(h), engine.MaxHeaders, func(v string) { all = append(all, engine.Header{Name: h, Value: v}) })
		default:
			before := r.bad
			v, _ := r.bytes(name)
			if r.bad != before {
				r.bad.Message = name + "." + engine.Clip(h) + r.bad.Message[len(name):]
			}
			all = append(all, engine.Header{Name: h, Value: string(v)})
		}
	}
	return all
}

func (r *Reader) pairs(name string) (all []engine.Header) {
	r.all(name, engine.MaxHeaders, func(int) {
		var pair [2]string
		n := 0
		r.texts(name, len(pair), func(s string) { pair[n], n = s, n+1 })
		if n != len(pair) {
			r.Wrong("%s: an array of headers holds pairs of name and value", name)
		}
		all = append(all, engine.Header{Name: pair[0], Value: pair[1]})
	})
	return all
}
