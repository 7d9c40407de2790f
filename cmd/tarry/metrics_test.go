package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// tarry serve counts what goes through it, and tells what its store holds.
func TestServeMetrics(t *testing.T) {
	w, _ := served(t, "mem:")
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	w.must(t, "push", "mail", "x", "--key", "ann", "--in", "1h")
	const pushed = `tarry_http_requests_total{method="POST",route="/v1/messages",status="200"} 1` + "\n"
	var text string
	for range 100 { // a request is counted when it has been answered
		if text = scraped(t, url); strings.Contains(text, pushed) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, line := range []string{
		"tarry_store_up 1\n",
		`tarry_pushes_total{outcome="created",queue="mail"} 1` + "\n",
		`tarry_messages{queue="mail",state="scheduled"} 1` + "\n",
		pushed,
		"go_goroutines ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("without %q:\n%s", line, text)
		}
	}
}

// scraped is what /metrics answers.
func scraped(t *testing.T, url string) string {
	t.Helper()
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
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
	return string(text)
}
