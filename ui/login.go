package ui

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// standing tells a page about its viewer.
type standing struct {
	Needed   bool           `json:"needed"`    // a token is needed to see anything
	Session  bool           `json:"session"`   // the viewer has logged in
	ReadOnly bool           `json:"read_only"` // whatever the token allows
	Me       jsontext.Value `json:"me"`        // what the API says about the viewer, or null
}

// maxLogin is the largest log-in request, in bytes.
const maxLogin = 4 << 10

// session returns the viewer (GET), logs in (POST) and logs out (DELETE).
func (h *Handler) session(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if err := h.origins.Check(r); err != nil {
		fail(w, http.StatusForbidden, "forbidden", "the request comes from a web page of another origin", "use the dashboard's own pages")
		return
	}
	switch r.Method {
	case http.MethodGet:
		h.tell(w, r)
	case http.MethodPost:
		h.logIn(w, r)
	case http.MethodDelete:
		h.finish(r)
		http.SetCookie(w, h.cookie(r, mounted(r, "session"), ""))
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "DELETE, GET, POST")
		fail(w, http.StatusMethodNotAllowed, "invalid", r.Method+" is not allowed here", "allowed: DELETE, GET, POST")
	}
}

// tell returns the viewer. Once the API has asked for a token, it is not asked again for a
// viewer without one, since it counts each time as a failure.
func (h *Handler) tell(w http.ResponseWriter, r *http.Request) {
	token := ""
	if c, err := r.Cookie(h.cookieName(r, mounted(r, "session"))); err == nil {
		if s := h.sessions.enter(c.Value); s != nil {
			defer h.sessions.leave(s)
			token = s.token
		}
	}
	if token == "" && h.guarded.Load() {
		h.answer(w, &standing{Needed: true})
		return
	}
	me := h.ask(r, token)
	switch me.status {
	case http.StatusOK:
		h.answer(w, &standing{Session: token != "", Me: me.body.Bytes()})
	case http.StatusUnauthorized:
		h.guarded.Store(true)
		h.answer(w, &standing{Needed: true})
	default:
		me.copyTo(w)
	}
}

func (h *Handler) answer(w http.ResponseWriter, s *standing) {
	s.ReadOnly = h.cfg.ReadOnly
	b, err := json.Marshal(s)
	if err != nil {
		fail(w, http.StatusBadGateway, "internal", "the API does not answer as it should", "mount the dashboard before a server of tarry")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // the client may have left
}

// logIn begins a session if the API knows the token. The API slows down clients that try
// many.
func (h *Handler) logIn(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, "invalid", "the Content-Type must be application/json", "")
		return
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLogin))
	var in struct {
		Token string `json:"token"`
	}
	if err == nil {
		err = json.Unmarshal(b, &in, json.RejectUnknownMembers(true))
	}
	in.Token = strings.TrimSpace(in.Token)
	if err != nil || in.Token == "" || strings.ContainsFunc(in.Token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		fail(w, http.StatusBadRequest, "invalid", "that is no token", "a token begins with tarry_ and is one word; tarry token create makes one")
		return
	}
	me := h.ask(r, in.Token)
	if me.status != http.StatusOK {
		if me.status == http.StatusUnauthorized {
			h.guarded.Store(true)
		}
		me.copyTo(w)
		return
	}
	h.finish(r) // or nothing would end it
	http.SetCookie(w, h.cookie(r, mounted(r, "session"), h.sessions.begin(in.Token)))
	h.answer(w, &standing{Session: true, Me: me.body.Bytes()})
}

// finish ends the session of a request, if there is one.
func (h *Handler) finish(r *http.Request) {
	if c, err := r.Cookie(h.cookieName(r, mounted(r, "session"))); err == nil {
		h.sessions.finish(c.Value)
	}
}

// ask asks the API about a token, in the name of a request's client.
func (h *Handler) ask(r *http.Request, token string) *answer {
	q := r.Clone(r.Context())
	q.Method, q.Body, q.ContentLength, q.TransferEncoding = http.MethodGet, http.NoBody, 0, nil
	q.URL, q.RequestURI = &url.URL{Path: "/v1/me"}, "/v1/me"
	for _, name := range []string{"Cookie", "Content-Type", "Content-Length", "Expect", "Authorization"} {
		q.Header.Del(name)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	a := &answer{header: make(http.Header)}
	h.api.ServeHTTP(a, q)
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a
}

// answer keeps the API's answer to a request of the Handler's own.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the header of the answer.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader keeps the status.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write keeps the body.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// copyTo writes the answer to w.
func (a *answer) copyTo(w http.ResponseWriter) {
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if v := a.header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // the client may have left
}
