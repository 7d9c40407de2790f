package cli

import (
	"errors"
	"strings"
	"testing"
)

// tarry serve counts what goes through it, and tells what its store holds.
func TestServeMetrics(t *testing.T) {
	w, _ := served(t, "mem:")
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	w.must(t, "push", "mail", "x", "--key", "ann", "--in", "1h")
	const pushed = `tarry_http_requests_total{method="POST",route="/v1/messages",status="200"} 1` + "\n"
	var text string
	awaits(t, "the request to be counted", func() error { // which is when it has been answered
		_, body, err := fetch(t, url+"/metrics")
		if text = string(body); err == nil && !strings.Contains(text, pushed) {
			err = errors.New("it is not there")
		}
		return err
	})
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
