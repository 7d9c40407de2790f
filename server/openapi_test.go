package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/apicheck"
	"github.com/tarryhq/tarry/server"
)

// newServer is server.New, but all that the server takes and answers is held against
// its OpenAPI document.
func newServer(t testing.TB, c *tarry.Client, cfg *server.Config) *server.Watched {
	s := server.New(c, cfg)
	check, err := checker()
	if err != nil {
		t.Fatal(err)
	}
	return &server.Watched{Server: s, Handler: check.Handler(s, func(err error) { t.Error(err) })}
}

var checker = sync.OnceValues(func() (*apicheck.Checker, error) { return apicheck.New(document()) })

func document() []byte {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	w := httptest.NewRecorder()
	server.New(c, nil).ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/openapi.json", nil))
	return w.Body.Bytes()
}

// What is forbidden by the document is found, else the tests that are held against it
// would show nothing.
func TestDocumentIsHeldAgainst(t *testing.T) {
	check, err := checker()
	if err != nil {
		t.Fatal(err)
	}
	asJSON := http.Header{"Content-Type": {"application/json"}}
	const push, pushed = "/v1/queues/q/messages", `{"outcome":"created","id":"1","queue":"q","key":"","due":"2030-03-01T12:00:00.000Z","state":"ready"}`
	for _, c := range []struct {
		method, path, body string
		status             int
		answer             string
		fits               bool
	}{
		{"POST", push, `{}`, 201, pushed, true},
		{"POST", push, `{"nope":1}`, 201, pushed, false},
		{"POST", push, `{"delay":30}`, 201, pushed, false},
		{"POST", push, `{"max_attempts":0}`, 201, pushed, false},
		{"POST", "/v1/queues/-q/messages", `{}`, 201, pushed, false},
		{"POST", push, `{}`, 202, pushed, false},
		{"POST", push, `{}`, 201, `{}`, false},
		{"POST", push, `{}`, 201, strings.Replace(pushed, `"1"`, `1`, 1), false},
		{"POST", push, `{}`, 201, strings.Replace(pushed, `{`, `{"more":1,`, 1), false},
		{"POST", push, `{"nope":1}`, 400, `{"error":{"code":"invalid","message":"nope: no such field","hint":""}}`, true},
		{"POST", push, `{}`, 400, `{"error":{"code":"other","message":"","hint":""}}`, false},
		{"POST", push, `{}`, 418, `{"message":"no"}`, false},
		{"GET", "/v1/queues?limit=1001", ``, 200, `{"queues":[],"next":""}`, false},
		{"GET", "/v1/queues?limit=1000", ``, 200, `{"queues":[],"next":""}`, true},
		{"GET", "/v1/nope", ``, 200, `{}`, false},
		{"GET", "/v1/nope", ``, 404, `{"error":{"code":"not_found","message":"","hint":""}}`, true},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		err := check.Check(r, []byte(c.body), apicheck.Answer{Status: c.status, Header: asJSON, Body: []byte(c.answer)})
		if (err == nil) != c.fits {
			t.Errorf("%s %s %s: %d %s: %v", c.method, c.path, c.body, c.status, c.answer, err)
		}
	}
}
