package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// tarry serve counts what goes through it, and tells what its store holds.
func TestServeMetrics(t *testing.T) {
	w, _ := served(t, "mem:")
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	w.must(t, "push", "mail", "x", "--key", "ann", "--in", "1h")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"tarry_store_up 1\n",
		`tarry_pushes_total{outcome="created",queue="mail"} 1` + "\n",
		`tarry_messages{queue="mail",state="scheduled"} 1` + "\n",
		`tarry_http_requests_total{method="POST",route="/v1/queues/{queue}/messages",status="201"} 1` + "\n",
		"go_goroutines ",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("status %d, without %q:\n%s", resp.StatusCode, line, text)
		}
	}
}
