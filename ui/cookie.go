package ui

import (
	"net/http"
	"net/url"
	"strings"
)

// cookieName is the name of the session cookie. It contains the port, since browsers send
// a cookie to all ports of a host.
func (h *Handler) cookieName(r *http.Request, at string) string {
	name := "tarry"
	if i := strings.LastIndexByte(r.Host, ':'); i > strings.LastIndexByte(r.Host, ']') {
		name += "-" + strings.Map(func(c rune) rune {
			if c < '0' || c > '9' {
				return -1
			}
			return c
		}, r.Host[i:])
	}
	switch {
	case !h.secure(r):
		return name
	case at == "/":
		return "__Host-" + name // for this host only, all paths
	}
	return "__Secure-" + name
}

// secure reports whether the browser uses TLS.
func (h *Handler) secure(r *http.Request) bool { return h.cfg.Secure || r.TLS != nil }

// cookie returns a session cookie for the Handler at a path. An empty value deletes the
// cookie.
func (h *Handler) cookie(r *http.Request, at, value string) *http.Cookie {
	c := &http.Cookie{
		Name: h.cookieName(r, at), Value: value, Path: at,
		HttpOnly: true, Secure: h.secure(r), SameSite: http.SameSiteStrictMode,
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// mounted returns the path of the pages as browsers see it, with a slash at its end: the
// request's path without the part below the Handler.
func mounted(r *http.Request, below string) string {
	u, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return "/"
	}
	at, ok := strings.CutSuffix(u.EscapedPath(), below)
	if !ok || !strings.HasSuffix(at, "/") || strings.ContainsAny(at, ";, ") {
		return "/"
	}
	return at
}
