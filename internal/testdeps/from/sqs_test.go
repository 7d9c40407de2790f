package from

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestFromSQSAndCloudTasks(t *testing.T) {
	called := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		called <- r.URL.Path + " " + string(body)
	}))
	defer receiver.Close()
	p := follow(t, "sqs-cloud-tasks.md", "http://127.0.0.1:9000", receiver.URL)
	p.run()
	p.run()
	if out := p.run(); !strings.Contains(out, `"outcome":"created"`) || !strings.Contains(out, `{"to":"eve"}`) || !strings.Contains(out, `"lease":`) {
		t.Errorf("the calls answer %s", out)
	}
	p.done()
	select {
	case got := <-called:
		if got != `/due {"to":"bob"}` {
			t.Errorf("the route called %s", got)
		}
	case <-time.After(patience):
		t.Error("the route did not call")
	}
	p.has(p.client(), "mail")
}
