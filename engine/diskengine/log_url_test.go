package diskengine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine"
)

// TestLogURLBoundsLeases opens a store for two leases at most by its URL, of which a queue that is alone has
// one.
func TestLogURLBoundsLeases(t *testing.T) {
	e, err := engine.Open(t.Context(), "disk://"+t.TempDir()+"?store=log&max_leases=2&ballast=0&min_free=0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	var msgs []engine.Message
	for i := range 3 {
		msgs = append(msgs, engine.Message{Queue: "q", Key: fmt.Sprint(i)})
	}
	if _, err := e.Push(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 3, TTR: time.Hour}})
	if err != nil || len(g.Queues[0].Messages) != 1 || !g.Queues[0].Held {
		t.Errorf("%v, %+v", err, g)
	}
	for _, bad := range []string{"0", "-1", "many"} {
		_, err := engine.Open(t.Context(), "disk://"+t.TempDir()+"?store=log&max_leases="+bad)
		if err == nil || !strings.Contains(err.Error(), "max_leases is ") {
			t.Errorf("max_leases=%s: %v", bad, err)
		}
	}
}

// TestEachStoreNamesTheOther opens the directory of each store as one of the other.
func TestEachStoreNamesTheOther(t *testing.T) {
	for made, as := range map[string]string{"": "?store=log", "?store=log": ""} {
		url := "disk://" + t.TempDir()
		e, err := engine.Open(t.Context(), url+made)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		want := "open it as disk:" + strings.TrimPrefix(url, "disk://") + made + ","
		if _, err := engine.Open(t.Context(), url+as); !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("a store of %q opened as one of %q: %v, want %q", made, as, err, want)
		}
	}
}

func TestCheckNamesAStoreOnPebble(t *testing.T) {
	dir := t.TempDir()
	e, err := engine.Open(t.Context(), "disk://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := logengine.Check(t.Context(), dir, nil); !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), dir+" is a store on Pebble") {
		t.Error(err)
	}
}
