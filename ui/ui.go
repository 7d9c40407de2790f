package ui

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/tarryhq/tarry/internal/wire"
)

// Handler serves the dashboard. It is an http.Handler for any path, safe for concurrent
// use.
type Handler struct {
	api      http.Handler
	cfg      Config
	files    map[string]*asset
	sessions *sessions
	origins  *http.CrossOriginProtection
	guarded  atomic.Bool // the API has asked for a token
}

// New returns the dashboard of an API: a server.Server, or a handler in front of one. cfg
// may be nil.
//
// Requests that are neither for a page nor for the session go to api, with their path below
// the Handler. So clients with tokens of their own use the API at the same address.
func New(api http.Handler, cfg *Config) *Handler {
	c := cfg.withDefaults()
	return &Handler{api: api, cfg: c, files: load(), sessions: newSessions(&c), origins: http.NewCrossOriginProtection()}
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, h.cfg.Path)
	if !ok {
		fail(w, http.StatusNotFound, "not_found", "there is no such page", "the dashboard is at "+h.cfg.Path+"/")
		return
	}
	switch name := strings.TrimPrefix(path, "/"); {
	case path == "" && (h.cfg.Path != "" || r.URL.Path == ""):
		if looks(w, r) {
			h.toSlash(w, r)
		}
	case name == "session":
		h.session(w, r)
	case h.files[name] != nil:
		if looks(w, r) {
			h.files[name].serve(w, r, name != index)
		}
	default:
		h.pass(w, r)
	}
}

// looks reports whether a request only reads, and refuses it otherwise.
func looks(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	fail(w, http.StatusMethodNotAllowed, "invalid", r.Method+" is not allowed here", "allowed: GET, HEAD")
	return false
}

// toSlash redirects to the path with a slash at its end, which the relative addresses in the
// page need.
func (h *Handler) toSlash(w http.ResponseWriter, r *http.Request) {
	u, err := url.ParseRequestURI(r.RequestURI)
	if err != nil || u.Path == "" || strings.HasSuffix(u.Path, "/") { // an empty path counts as a slash
		h.files[index].serve(w, r, false)
		return
	}
	last := u.EscapedPath()
	w.Header().Set("Location", "./"+last[strings.LastIndexByte(last, '/')+1:]+"/")
	w.WriteHeader(http.StatusFound)
}

// pass passes a call to the API, with the token of its session if it has one.
func (h *Handler) pass(w http.ResponseWriter, r *http.Request) {
	if h.cfg.ReadOnly && r.Method != http.MethodGet && r.Method != http.MethodHead {
		fail(w, http.StatusForbidden, "forbidden", "this dashboard is read-only", "use another client, or start it without its read-only mode")
		return
	}
	var cookie *http.Cookie
	if r.Header["Cookie"] != nil && r.Header["Authorization"] == nil {
		cookie, _ = r.Cookie(h.cookieName(r, mounted(r, strings.TrimPrefix(below(r, h.cfg.Path), "/")))) // it fails if there is none
	}
	if cookie == nil {
		h.api.ServeHTTP(w, h.stripped(r))
		return
	}
	s := h.sessions.enter(cookie.Value)
	if s == nil {
		if h.guarded.Load() {
			fail(w, http.StatusUnauthorized, "unauthorized", "the session has ended", "log in again")
			return
		}
		h.api.ServeHTTP(w, h.stripped(r))
		return
	}
	defer h.sessions.leave(s)
	if err := h.origins.Check(r); err != nil {
		fail(w, http.StatusForbidden, "forbidden", "the request comes from a web page of another origin", "use the dashboard's own pages")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	r = h.stripped(r).WithContext(ctx)
	r.Header = r.Header.Clone()
	r.Header.Del("Cookie")
	r.Header.Set("Authorization", "Bearer "+s.token)
	h.api.ServeHTTP(w, r)
}

// below returns the escaped path of a request below the Handler.
func below(r *http.Request, path string) string {
	return strings.TrimPrefix(r.URL.EscapedPath(), path)
}

// stripped returns a request without the path of the Handler.
func (h *Handler) stripped(r *http.Request) *http.Request {
	if h.cfg.Path == "" {
		return r
	}
	c := *r
	u := *r.URL
	u.Path, u.RawPath = strings.TrimPrefix(u.Path, h.cfg.Path), strings.TrimPrefix(u.RawPath, h.cfg.Path)
	c.URL = &u
	return &c
}

// fail answers with an error in the API's format.
func fail(w http.ResponseWriter, status int, code, message, hint string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(wire.AppendError(nil, &wire.Error{Status: status, Code: code, Message: message, Hint: hint})) // the client may have left
}
