package tarry_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// Each worker of a client leases under its own name, host:pid unless it has another, and so
// does a claim. The failures of a message name it.
func TestWorkersLeaseUnderTheirNames(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	here := fmt.Sprint(host, ":", os.Getpid())
	bubble(t, func(t *testing.T, c *tarry.Client) {
		boom := errors.New("boom")
		if err := c.Pause(t.Context(), "q", 0); err != nil {
			t.Fatal(err)
		}
		var names []string
		for n := range 16 {
			name := strings.Repeat("w", n)
			names = append(names, cmp.Or(name, here))
			w := tarry.NewWorker(c, &tarry.WorkerConfig{Name: name, Concurrency: 1})
			if queues := w.Queues(); len(queues) > 0 {
				t.Errorf("without a handler it has the queues %q", queues)
			}
			tarry.Handle(w, bytesTopic, func(ctx context.Context, m claimed) error {
				if i, err := c.Get(ctx, tarry.ByID(m.ID).Of("q")); i.Worker != names[n] {
					t.Errorf("the message of %q is leased by %q, %v", names[n], i.Worker, err)
				}
				time.Sleep(time.Minute)
				return boom
			})
			defer run(t, w)()
		}
		var ids []tarry.ID
		for range names {
			ids = append(ids, push(t, c, "q", "x", tarry.Backoff(time.Hour)).ID)
		}
		if err := c.Resume(t.Context(), "q"); err != nil { // now one call brings a message for each
			t.Fatal(err)
		}
		pass(time.Second)
		workers := map[string]bool{}
		for _, id := range ids {
			i, err := c.Get(t.Context(), tarry.ByID(id).Of("q"))
			if err != nil || i.State != tarry.Leased {
				t.Errorf("%+v, %v", i, err)
			}
			workers[i.Worker] = true
		}
		if len(workers) != len(names) {
			t.Errorf("leased by %v", workers)
		}
		pass(2 * time.Minute)
		for _, id := range ids {
			i, err := c.Get(t.Context(), tarry.ByID(id).Of("q"))
			if err != nil || i.Worker != "" || len(i.Failures) != 1 || !workers[i.Failures[0].Worker] || i.Failures[0].Reason != "boom" {
				t.Errorf("%+v, %v", i, err)
			}
		}
		push(t, c, "read", "x", tarry.Key("k"))
		err := tarry.NewTopic[string]("read").Claim(t.Context(), c, tarry.ByKey("k"), func(ctx context.Context, m claimed) error {
			i, err := c.Get(ctx, tarry.ByKey("k").Of("read"))
			if i.Worker != here {
				t.Errorf("claimed by %q, not %q", i.Worker, here)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestBadNamesOfWorkersAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		push(t, c, "q", "x", tarry.Key("k"))
		for _, name := range []string{strings.Repeat("w", 101), "a\nb", "\xff"} {
			opts := tarry.LeaseOptions{Worker: name}
			_, lease := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, LeaseOptions: opts})
			_, claim := c.Claim(t.Context(), tarry.ByKey("k").Of("q"), opts)
			w := tarry.NewWorker(c, &tarry.WorkerConfig{Name: name})
			tarry.Handle(w, bytesTopic, func(context.Context, claimed) error { return nil })
			for what, err := range map[string]error{"lease": lease, "claim": claim, "worker": w.Run(t.Context())} {
				if !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), "worker's name") {
					t.Errorf("%s by %q: %v", what, name, err)
				}
			}
		}
	})
}

// The history names who cancelled: host:pid unless the call says otherwise.
func TestCancelsAreUnderTheNameOfTheCaller(t *testing.T) {
	ctx := t.Context()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	here := fmt.Sprint(host, ":", os.Getpid())
	c := tarry.New(memengine.New(&memengine.Config{History: engine.History{Keep: time.Hour}}), nil)
	defer c.Engine().Close()
	defer c.Close()
	cancels := map[string]func(ref tarry.Ref) error{
		"Cancel": func(ref tarry.Ref) error { return c.Cancel(ctx, ref) },
		"CancelMany": func(ref tarry.Ref) error {
			got, err := c.CancelMany(ctx, []tarry.Ref{ref})
			if err == nil && got[0].Ref != ref {
				t.Errorf("%+v is answered for %+v", got[0].Ref, ref)
			}
			return cmp.Or(err, got[0].Err)
		},
		"CancelWhere": func(ref tarry.Ref) error {
			_, err := c.CancelWhere(ctx, tarry.Filter{Queue: ref.Queue})
			return err
		},
	}
	for name, cancel := range cancels {
		for by, want := range map[string]string{"": here, "ann": "ann"} {
			if name == "CancelWhere" {
				want = here
			}
			ref := tarry.ByID(push(t, c, "q", "x", tarry.In(time.Hour)).ID).Of("q")
			bad := ref
			bad.By = strings.Repeat("w", tarry.MaxWorkerBytes+1)
			if err := cancel(bad); name != "CancelWhere" && (!errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), "who cancels has 101 bytes")) {
				t.Errorf("%s by a name too long: %v", name, err)
			}
			ref.By = by
			if err := cancel(ref); name != "CancelWhere" && err != nil {
				t.Fatal(err)
			}
			if i, err := c.Get(ctx, ref); err != nil || i.Ending != tarry.WasCancelled || i.Worker != want {
				t.Errorf("%s by %q is by %q, %v; want %q", name, by, i.Worker, err, want)
			}
		}
	}
}
