package ui

import (
	"net/http"
	"net/url"
	"strings"
)

// cookieName is what the cookie of a session is called. Cookies are not told apart by
// port: servers on several ports of a machine would take each other's.
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
		return "__Host-" + name // of this very host, and of all of it
	}
	return "__Secure-" + name
}

// secure reports whether a browser asks over TLS.
func (h *Handler) secure(r *http.Request) bool { return h.cfg.Secure || r.TLS != nil }

// cookie is one for a session, of the Handler at a path; without a value it takes the
// cookie away.
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

// mounted is the path of the pages as browsers see it, with a slash at its end: what of
// the request's own path stands before what is below the Handler.
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
