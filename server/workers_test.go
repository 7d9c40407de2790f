package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/engine/memengine"
	shapes "github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server"
)

// workers lists the workers, after the scan before has become old.
func (a *api) workers() (w shapes.Workers) {
	a.Helper()
	time.Sleep(2 * time.Second)
	got := a.send("GET", "/v1/workers", "")
	if err := json.Unmarshal(got.Body.Bytes(), &w); err != nil || got.Code != http.StatusOK {
		a.Fatal(got.Code, got.Body, err)
	}
	return w
}

// brief returns workers as words.
func brief(all []shapes.Worker) string {
	var words []string
	for _, w := range all {
		at := w.Address
		if w.Elsewhere {
			at = "elsewhere"
		}
		words = append(words, fmt.Sprintf("%s@%s %v %d/%d/%d", w.Name, at, w.Queues, w.Leased, w.Handled, w.Failed))
	}
	return strings.Join(words, "; ")
}

// aBubble returns an API inside a bubble. Several share an engine.
func aBubble(t *testing.T, mem engine.Engine) *api {
	c := tarry.New(mem, nil)
	t.Cleanup(func() { _ = c.Close() })
	return &api{TB: t, c: c, s: newServer(t, c, nil)}
}

// lease leases messages and returns their tokens.
func (a *api) lease(body string) (tokens []string) {
	a.Helper()
	for _, m := range a.call(200, "POST", "/v1/lease", body)["messages"].([]any) {
		tokens = append(tokens, m.(map[string]any)["lease"].(string))
	}
	return tokens
}

func (a *api) settleAll(do string, tokens ...string) {
	a.Helper()
	for _, token := range tokens {
		got := a.call(200, "POST", "/v1/settle", fmt.Sprintf(`{"settlements":[{"lease":%q,%s}]}`, token, do))
		if got["failed"] != 0.0 {
			a.Fatal(do, got)
		}
	}
}

// Who asks, waits, claims and settles is listed, with what became of its leases.
func TestWorkersAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := aBubble(t, memengine.New(nil))
		is := func(when, want string) {
			t.Helper()
			if got := brief(a.workers().Workers); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		is("at first", "")
		for range 8 {
			a.call(201, "POST", "/v1/queues/q/messages", `{"ttr":"20m","backoff":["1h"]}`)
		}
		began := time.Now()
		all := a.lease(`{"queues":["q","idle"],"max":7,"worker":"now"}`)
		a.lease(`{"queues":["other"],"wait":"1ms","worker":"waits"}`)
		set := a.call(200, "POST", "/v1/lease", `{"queues":["kept"],"wait":"1ms","keep":true,"worker":"keeps"}`)["set"]
		a.lease(`{"queues":["q"],"ttr":"90s"}`)
		is("after they asked", "@192.0.2.1 [q] 1/0/0; keeps@192.0.2.1 [kept] 0/0/0; now@192.0.2.1 [idle q] 7/0/0; waits@192.0.2.1 [other] 0/0/0")
		if w := a.workers().Workers[2]; !w.Since.Time.Equal(began) || !w.Seen.Equal(began) || w.Elsewhere {
			t.Errorf("it is %+v, and asked at %s", w, began)
		}
		a.settleAll(`"do":"ack"`, all[0], all[1])
		a.settleAll(`"do":"retry"`, all[2])
		a.settleAll(`"do":"bury"`, all[3])
		a.settleAll(`"do":"snooze","delay":"1h"`, all[4])
		a.settleAll(`"do":"extend","ttr":"40m"`, all[5])
		a.call(200, "POST", "/v1/settle", fmt.Sprintf(`{"settlements":[{"lease":%q,"do":"ack"},{"lease":"x","do":"ack"}]}`, all[0])) // lost
		a.call(201, "POST", "/v1/queues/q/messages", `{"key":"k"}`)
		a.call(200, "POST", "/v1/queues/q/keys/k/claim", `{"worker":"reads","ttr":"10m"}`)
		for key, replace := range map[string]string{"alone": `{"key":"alone",%s}`, "batch": `{"messages":[{"queue":"q","key":"batch",%s}]}`} {
			a.call(201, "POST", "/v1/queues/q/messages", fmt.Sprintf(`{"key":%q}`, key))
			token := a.call(200, "POST", "/v1/queues/q/keys/"+key+"/claim", `{"worker":"reads","ttr":"10m"}`)["lease"]
			path := map[string]string{"alone": "/v1/queues/q/messages", "batch": "/v1/messages"}[key]
			a.call(200, "POST", path, fmt.Sprintf(replace, fmt.Sprintf(`"on_conflict":"replace","delay":"2h","lease":%q`, token)))
		}
		for range 7 { // for longer than a worker without leases is listed
			a.lease(fmt.Sprintf(`{"set":%q,"wait":"1ms","worker":"keeps"}`, set))
			time.Sleep(50 * time.Second)
		}
		is("after they settled", "keeps@192.0.2.1 [kept] 0/0/0; now@192.0.2.1 [q] 2/2/2; reads@192.0.2.1 [q] 1/0/0")
		time.Sleep(6 * time.Minute)
		is("while leases are held", "now@192.0.2.1 [q] 2/2/2")
		time.Sleep(10 * time.Minute)
		is("when one has lapsed", "now@192.0.2.1 [q] 1/2/2")
		time.Sleep(30 * time.Minute)
		is("when all have gone", "")
	})
}

// A worker of the Go client is listed with its version, under its default name if it has no other.
func TestWorkersOfGoClients(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	s := httptest.NewServer(newServer(t, c, nil))
	defer s.Close()
	for name, queue := range map[string]string{"!alice": "of-first", "": "of-second"} {
		remote, err := tarry.Open(t.Context(), s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer remote.Close()
		if _, err := remote.PushMany(t.Context(), []tarry.Draft{tarry.NewDraft(queue, nil), tarry.NewDraft(queue, nil, tarry.MaxAttempts(1))}); err != nil {
			t.Fatal(err)
		}
		w := tarry.NewWorker(remote, &tarry.WorkerConfig{Name: name, Concurrency: 1})
		handled := 0
		tarry.Handle(w, tarry.NewTopic[[]byte](queue), func(context.Context, *tarry.Message[[]byte]) error {
			if handled++; handled == 2 {
				return errors.New("no")
			}
			return nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- w.Run(ctx) }()
		defer func() {
			stop()
			<-ran
		}()
	}
	remote, err := tarry.Open(t.Context(), s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("!alice@127.0.0.1 [of-first] 0/1/1; %s:%d@127.0.0.1 [of-second] 0/1/1", host, os.Getpid())
	for got, by := "", time.Now().Add(30*time.Second); got != want; {
		if time.Now().After(by) {
			t.Fatalf("they are %s, want %s", got, want)
		}
		answer, err := remote.Engine().(*httpengine.Engine).Fetch(t.Context(), "/v1/workers", "")
		if err != nil {
			t.Fatal(err)
		}
		var told shapes.Workers
		if err := json.Unmarshal(answer, &told); err != nil {
			t.Fatal(err)
		}
		got = brief(told.Workers)
		for _, w := range told.Workers {
			if !strings.HasPrefix(w.Version, "tarry/") {
				t.Errorf("%s has the version %q", w.Name, w.Version)
			}
		}
	}
}

// Over one store each server lists whom it serves, and who else holds leases.
func TestWorkersElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memengine.New(nil)
		defer mem.Close()
		a, b := aBubble(t, mem), aBubble(t, mem)
		for _, q := range []string{"one", "two", "two", "two"} {
			a.call(201, "POST", "/v1/queues/"+q+"/messages", `{"ttr":"1h"}`)
		}
		a.lease(`{"queues":["one"],"worker":"alice"}`)
		a.lease(`{"queues":["two"],"worker":"alice"}`)
		a.lease(`{"queues":["two"]}`)
		b.lease(`{"queues":["two"],"worker":"alice"}`)
		for name, want := range map[*api]string{
			a: "@192.0.2.1 [two] 1/0/0; alice@192.0.2.1 [one two] 2/0/0",
			b: "alice@elsewhere [one] 1/0/0; alice@192.0.2.1 [two] 1/0/0",
		} {
			if got := name.workers(); brief(got.Workers) != want || got.More {
				t.Errorf("%s, want %s", brief(got.Workers), want)
			}
		}
		all, more, err := server.WorkersOf(t.Context(), a.c)
		if got, want := brief(all), "alice@elsewhere [one two] 3/0/0"; got != want || more || err != nil {
			t.Errorf("of the store they are %s, %v, %v; want %s", got, more, err, want)
		}
	})
}

// Of very many leases some are read, and the answer says that there are others.
func TestWorkersOfManyLeases(t *testing.T) {
	mem := memengine.New(nil)
	defer mem.Close()
	c := tarry.New(mem, nil)
	defer c.Close()
	if _, err := c.PushMany(t.Context(), slices.Repeat([]tarry.Draft{tarry.NewDraft("q", nil)}, 1001)); err != nil {
		t.Fatal(err)
	}
	for _, max := range []int{1000, 1} {
		got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: max, LeaseOptions: tarry.LeaseOptions{Worker: fmt.Sprint("w", max)}})
		if err != nil || len(got.Messages) != max {
			t.Fatal(len(got.Messages), err)
		}
		all, more, err := server.WorkersOf(t.Context(), c)
		if want := "w1000@elsewhere [q] 1000/0/0"; brief(all) != want || more != (max == 1) || err != nil {
			t.Errorf("%s, %v, %v; want %s", brief(all), more, err, want)
		}
	}
}

// Whether a queue has a worker is known: one that waits in vain is one.
func TestNoWorkerIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := aBubble(t, memengine.New(nil))
		for _, q := range []string{"alone", "held"} {
			a.call(201, "POST", "/v1/queues/"+q+"/messages", `{}`)
		}
		a.call(200, "PUT", "/v1/queues/held/settings", `{"settings":{"rate":0.001,"burst":1}}`)
		a.settleAll(`"do":"release"`, a.lease(`{"queues":["held"]}`)...)
		is := func(want ...string) {
			t.Helper()
			var told shapes.Problems
			if err := json.Unmarshal(a.send("GET", "/v1/problems", "").Body.Bytes(), &told); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range told.Problems {
				got = append(got, p.Problem+" "+p.Queue+": "+p.Message)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		time.Sleep(4 * time.Minute)
		is("no_worker alone: 1 message is due, the oldest for 4m, and no worker has asked this server since it started",
			"late held: 1 message is due, the oldest for 4m, with 0 leases held")
		a.lease(`{"queues":["held"],"wait":"1ms"}`)
		time.Sleep(2 * time.Minute)
		is("no_worker alone: 1 message is due, the oldest for 6m, and no worker has asked this server for 5m",
			"late held: 1 message is due, the oldest for 6m, with 0 leases held")
		time.Sleep(4 * time.Minute)
		a.lease(`{"queues":["other"]}`)
		is("no_worker alone: 1 message is due, the oldest for 10m, and no worker has asked this server for 5m",
			"no_worker held: 1 message is due, the oldest for 10m, and no worker has asked this server for 5m")
	})
}

// A worker in the server's own process is no one elsewhere, and its queues have a worker.
func TestWorkersOfTheServerItself(t *testing.T) {
	a := aBubble(t, memengine.New(nil))
	w := tarry.NewWorker(a.c, &tarry.WorkerConfig{Name: "own", Concurrency: 1})
	begun, done := make(chan bool, 6), make(chan bool)
	for _, q := range []string{"alone", "one", "two"} {
		if q != "alone" {
			tarry.Handle(w, tarry.NewTopic[[]byte](q), func(context.Context, *tarry.Message[[]byte]) error {
				begun <- true
				<-done
				return nil
			})
		}
		for range 3 {
			a.call(201, "POST", "/v1/queues/"+q+"/messages", `{"due":"2020-01-01T00:00:00Z"}`)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	defer func() {
		stop()
		<-ran
	}()
	defer close(done)
	<-begun
	got := a.send("GET", "/v1/workers", "")
	if want := `{"workers":[{"name":"own","address":"","queues":["one","two"],"more_queues":false,"leased":1,"handled":0,"failed":0,"since":null,"seen":null,"version":"","elsewhere":false}],"more":false}`; got.Body.String() != want {
		t.Errorf("got %s, want %s", got.Body, want)
	}
	if kinds, _ := a.problems("/v1/problems"); kinds != "no_worker:alone late:one late:two" { // one of which has no lease
		t.Errorf("the problems are %s", kinds)
	}
}
