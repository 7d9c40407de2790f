package server_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// A handler before the server may read the body: a lease then waits as long as it wants.
func TestBodyReadBefore(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	s := newServer(t, c, &server.Config{ReadTimeout: 100 * time.Millisecond})
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(b))
		s.ServeHTTP(w, r)
	}))
	defer h.Close()
	began := time.Now()
	resp, err := http.Post(h.URL+"/v1/lease", "application/json", strings.NewReader(`{"queues":["none"],"wait":"1s"}`))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	if took := time.Since(began); took < time.Second || resp.StatusCode != 200 {
		t.Errorf("it was answered after %v: %s %s", took, resp.Status, b)
	}
}
