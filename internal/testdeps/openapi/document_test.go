// Package openapi_test reads the server's OpenAPI document with a library for these.
package openapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/apicheck"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/trend"
)

// serve returns a server whose exchanges are held against its document, and the document.
func serve(t *testing.T) (http.Handler, *openapi3.T) {
	t.Helper()
	trends := trend.New(nil)
	c := tarry.New(memengine.New(nil), &tarry.Config{Meter: trends.Meter()})
	t.Cleanup(func() { _ = c.Close() })
	s := server.New(c, &server.Config{Trends: trends})
	text := send(t, s, "GET", "/openapi.json", "").Body.Bytes()
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	check, err := apicheck.New(text)
	if err != nil {
		t.Fatal(err)
	}
	return check.Handler(s, func(err error) { t.Error(err) }), doc
}

func send(t *testing.T, s http.Handler, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if method != "GET" && method != "DELETE" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestDocumentIsOpenAPI(t *testing.T) {
	_, doc := serve(t)
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("it is OpenAPI %s", doc.OpenAPI)
	}
}

// The server understands what the document gives as an example of a request, and the
// document describes what it answers.
func TestDocumentExamples(t *testing.T) {
	s, doc := serve(t)
	ids := make(map[string]bool)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if ids[op.OperationID] || op.OperationID == "" || op.Summary == "" {
				t.Errorf("%s %s: no id of its own, or no summary", method, path)
			}
			ids[op.OperationID] = true
			if op.RequestBody == nil {
				continue
			}
			example, _ := json.Marshal(op.RequestBody.Value.Content["application/json"].Example)
			at := strings.NewReplacer("{queue}", "order.unpaid", "{key}", "42", "{id}", "1", "{name}", "nightly").Replace(path)
			if w := send(t, s, method, at, string(example)); w.Code == 400 || w.Code >= 500 && w.Code != 501 {
				t.Errorf("%s %s %s: %d %s", method, path, example, w.Code, w.Body)
			}
		}
	}
	if len(ids) < 20 {
		t.Errorf("only %d operations", len(ids))
	}
}
