package httpengine_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/apicheck"
	"github.com/tarryhq/tarry/server"
)

// few is how many calls of a kind are looked at, and then one in so many: the suite makes
// hundreds of thousands.
const few = 50

var checker = sync.OnceValues(func() (*apicheck.Checker, error) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Engine().Close()
	defer c.Close()
	w := httptest.NewRecorder()
	server.New(c, nil).ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/openapi.json", nil))
	check, err := apicheck.New(w.Body.Bytes())
	if err == nil {
		check.Few = few
	}
	return check, err
})

// watched is a server of which what it takes from the engine here, and answers, is held
// against its OpenAPI document.
func watched(t testing.TB, s http.Handler) http.Handler {
	t.Helper()
	check, err := checker()
	if err != nil {
		t.Fatal(err)
	}
	return check.Handler(s, func(err error) { t.Error(err) })
}
