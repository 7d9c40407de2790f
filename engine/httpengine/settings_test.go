package httpengine_test

import (
	"errors"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// Whoever waits asks again once this engine has changed what holds back.
func TestConfigureIsHinted(t *testing.T) {
	e := open(t, serve(t, memengine.New(nil)))
	defer e.Close()
	var hinted []string
	defer e.Watch(func(queue string) { hinted = append(hinted, queue) })()
	revision, err := e.Configure(t.Context(), "q", engine.Settings{InFlight: 1}, "0")
	if err != nil || len(hinted) != 1 || hinted[0] != "q" {
		t.Errorf("%v; hinted %q", err, hinted)
	}
	if _, err := e.Configure(t.Context(), "q", engine.Settings{InFlight: 2}, "0"); !errors.Is(err, engine.ErrStale) || len(hinted) != 1 {
		t.Errorf("an old revision: %v; hinted %q", err, hinted)
	}
	if s, r, err := e.Settings(t.Context(), "q"); err != nil || r != revision || s.InFlight != 1 {
		t.Errorf("%+v, %s, %v", s, r, err)
	}
}
