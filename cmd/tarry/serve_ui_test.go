package main

import (
	"net/http"
	"strings"
	"testing"
)

// The dashboard is at /, and when it is read-only the API is not for other clients.
func TestServeDashboard(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		args := []string{"serve", "--store", "mem:", "--http", "127.0.0.1:0"}
		if readOnly {
			args = append(args, "--ui-read-only")
		}
		s := world{}.start(t, args...)
		url := s.stdout.await(t, `look: (http://\S+/)\n`)[1]
		if status, body, err := fetch(t, url); err != nil || status != 200 || !strings.Contains(string(body), "<title>tarry</title>") {
			t.Errorf("%d %s %v", status, body, err)
		}
		push := func(origin string) int {
			r, err := http.NewRequestWithContext(t.Context(), "POST", url+"v1/queues/mail/messages", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			return res.StatusCode
		}
		want := 201
		if readOnly {
			want = 403
		}
		if status := push(strings.TrimSuffix(url, "/")); status != want {
			t.Errorf("read-only %t: a page pushes: %d", readOnly, status)
		}
		if status := push(""); status != 201 {
			t.Errorf("read-only %t: a client pushes: %d", readOnly, status)
		}
	}
}
