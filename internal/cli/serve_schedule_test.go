package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// scheduler calls a server about schedules.
type scheduler struct {
	*testing.T
	url string
}

func newScheduler(t *testing.T, w world) scheduler {
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	return scheduler{t, url}
}

// call sends a request and returns the status and the answer.
func (s scheduler) call(method, path, body string) (int, []byte) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return resp.StatusCode, answer
}

// set stores a schedule, and returns the status and the revision.
func (s scheduler) set(name, body string) (int, string) {
	s.Helper()
	status, answer := s.call("PUT", "/v1/schedules/"+name, body)
	var told struct{ Revision string }
	if err := json.Unmarshal(answer, &told); err != nil {
		s.Fatalf("%d %s", status, answer)
	}
	return status, told.Revision
}

// fired waits for n runs of a schedule of every second, and returns their instants. They are
// acked.
func (s scheduler) fired(queue string, n int) (instants []time.Time) {
	s.Helper()
	for len(instants) < n {
		status, answer := s.call("POST", "/v1/lease", fmt.Sprintf(`{"queues":[%q],"max":%d,"wait":"20s"}`, queue, n-len(instants)))
		var got struct {
			Messages []struct {
				Lease   string
				Headers map[string]string
			}
		}
		if err := json.Unmarshal(answer, &got); err != nil || status != 200 || len(got.Messages) == 0 {
			s.Fatalf("%d %s", status, answer)
		}
		for _, m := range got.Messages {
			at, err := time.Parse(time.RFC3339, m.Headers["tarry-instant"])
			if err != nil {
				s.Fatal(err)
			}
			instants = append(instants, at)
			if status, answer := s.call("POST", "/v1/settle", `{"settlements":[{"lease":"`+m.Lease+`","do":"ack"}]}`); status != 200 || !strings.Contains(string(answer), `"failed":0`) {
				s.Fatalf("%d %s", status, answer)
			}
		}
	}
	return instants
}

// eachOnce wants the instants of consecutive seconds, each once, in any order.
func eachOnce(t *testing.T, instants []time.Time) {
	t.Helper()
	slices.SortFunc(instants, time.Time.Compare)
	for i, at := range instants {
		if want := instants[0].Add(time.Duration(i) * time.Second); !at.Equal(want) {
			t.Fatalf("the instants are %v, want %v as number %d", instants, want, i)
		}
	}
}

// A server fires schedules, ends them in order, and goes on where it stopped.
func TestServeRunsSchedules(t *testing.T) {
	t.Chdir(t.TempDir())
	w, s := served(t, "disk:data")
	a := newScheduler(t, w)
	if status, _ := a.set("a%2Fb", `{"spec":"@every 1s","message":{"queue":"q"}}`); status != 200 {
		t.Fatal(status)
	}
	instants := a.fired("q", 3)
	if code := s.stop(t); code != exitOK || strings.Contains(s.stderr.String(), "no longer") {
		t.Fatalf("exit code %d: %s", code, s.stderr)
	}
	w, s = served(t, "disk:data")
	a = newScheduler(t, w)
	eachOnce(t, append(instants, a.fired("q", 3)...))
	awaits(t, "the last run to have been acked", func() error {
		status, told := a.call("GET", "/v1/schedules/a%2Fb", "")
		if status == 200 && strings.Contains(string(told), `"state":"finished","ending":"acked","attempt":1,`) {
			return nil
		}
		a.fired("q", 1) // the second may have ended since
		return fmt.Errorf("%d %s", status, told)
	})
	if _, told, err := fetch(t, a.url+"/metrics"); err != nil || !strings.Contains(string(told), "\ntarry_schedule_problems 0\n") {
		t.Errorf("the metrics: %v %s", err, told)
	}
	if status, answer := a.call("DELETE", "/v1/schedules/a%2Fb", ""); status != 204 {
		t.Errorf("%d %s", status, answer)
	}
	if code := s.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, s.stderr)
	}
}

// Two servers on one store fire each instant once, and see each other's changes.
func TestTwoServersRunSchedules(t *testing.T) {
	url := redistest.Start(t).URL()
	w, s := served(t, url)
	other, _ := served(t, url)
	a, b := newScheduler(t, w), newScheduler(t, other)
	_, revision := a.set("s", `{"spec":"@every 1s","message":{"queue":"q"},"revision":"0"}`)
	instants := append(a.fired("q", 2), b.fired("q", 2)...)

	edit := func(by scheduler, queue string, codes chan int) {
		status := 0
		defer func() { codes <- status }()
		status, _ = by.set("t", `{"spec":"@daily","message":{"queue":"`+queue+`"},"revision":"0"}`)
	}
	codes := make(chan int, 2)
	go edit(a, "a", codes)
	go edit(b, "b", codes)
	if sum := <-codes + <-codes; sum != 200+409 {
		t.Errorf("of two editors %d", sum)
	}
	if status, told := b.call("GET", "/v1/schedules/s", ""); status != 200 || !strings.Contains(string(told), `"revision":"`+revision+`"`) {
		t.Errorf("the other tells %d %s", status, told)
	}
	if code := s.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, s.stderr)
	}
	eachOnce(t, append(instants, b.fired("q", 3)...))
}

// A server on an engine without schedules says so when asked for them, and else nothing.
func TestServeWithoutSchedules(t *testing.T) {
	w, s := served(t, rabbittest.Shared(t))
	a := newScheduler(t, w)
	for method, path := range map[string]string{"GET": "/v1/schedules", "PUT": "/v1/schedules/s"} {
		if status, answer := a.call(method, path, `{"spec":"@daily","message":{"queue":"q"}}`); status != 501 || !strings.Contains(string(answer), `"code":"unsupported"`) {
			t.Errorf("%s: %d %s", method, status, answer)
		}
	}
	if code := s.stop(t); code != exitOK || strings.Contains(s.stderr.String(), "no longer") {
		t.Fatalf("exit code %d: %s", code, s.stderr)
	}
}
