package storeurl

import (
	"cmp"
	"net"
	"net/url"
	"strings"
)

// Bare fails if the URL has anything but options, such as a host or a path. The error shows
// the example.
func (r *Reader) Bare(example string) {
	u := r.url
	if u.Opaque != "" || u.Host != "" || u.Path != "" || u.User != nil || u.Fragment != "" {
		r.Fail("the URL of this store is like %s, without further parts but options", example)
	}
}

// Path returns the file path in the URL, SCHEME:PATH or, for an absolute one, SCHEME:///PATH.
func (r *Reader) Path() string {
	u := r.url
	path := u.Path
	if path == "" {
		unescaped, err := url.PathUnescape(u.Opaque)
		if err != nil {
			r.Fail("the path in the store's URL is not well percent-encoded")
		}
		path = unescaped
	}
	switch {
	case u.Host != "" || u.User != nil:
		r.Fail("this store has no host: write %s:PATH, or %[1]s:///PATH for one from the root", u.Scheme)
	case u.Fragment != "":
		r.Fail("write %s:PATH, with ? and # of the path as %%3F and %%23", u.Scheme)
	case path == "":
		r.Fail("the path is missing: write %s:PATH, such as %[1]s:tarry-data", u.Scheme)
	}
	return path
}

// Address returns host and port, with localhost as the default host.
func Address(addr, port string) string {
	host, given, err := net.SplitHostPort(addr)
	if err != nil {
		host = strings.Trim(addr, "[]")
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), cmp.Or(given, port))
}
