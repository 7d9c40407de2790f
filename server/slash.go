package server

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// A queue or key may be a slash and nothing else. Its segment, %2F, is the one that
// net/http's mux does not take for a segment: unescaped it looks like the slash at the
// end of a path. So it goes through the mux in disguise, as a name that is none,
// since it is not UTF-8, and that no other segment of the path has.
type disguise struct{}

// disguised returns the request with lone slashes in disguise; nearly always that is
// the request itself.
func disguised(r *http.Request) *http.Request {
	if !strings.Contains(r.URL.RawPath, "/%2F") && !strings.Contains(r.URL.RawPath, "/%2f") {
		return r
	}
	segments := strings.Split(r.URL.RawPath, "/")
	mask := "\xff/"
	for strings.Contains(r.URL.Path, mask) {
		mask = "\xff" + mask
	}
	found := false
	for i, s := range segments {
		if strings.EqualFold(s, "%2F") {
			segments[i], found = url.PathEscape(mask), true
		}
	}
	if !found {
		return r
	}
	raw := strings.Join(segments, "/")
	path, err := url.PathUnescape(raw)
	if err != nil {
		return r
	}
	r = r.Clone(context.WithValue(r.Context(), disguise{}, mask))
	r.URL.Path, r.URL.RawPath = path, raw
	return r
}

// value returns a part of the path.
func value(r *http.Request, name string) string {
	v := r.PathValue(name)
	if mask, ok := r.Context().Value(disguise{}).(string); ok && v == mask {
		return "/"
	}
	return v
}
