package redisengine

import (
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// A lease that its holder's push has ended is not held any more.
func TestReplacedLeasesAreNotHeld(t *testing.T) {
	t.Parallel()
	e := openStore(t, redistest.Start(t).URL())
	push(t, e, plain("q", "k"))
	l := lease1(t, e, "q")
	if _, held := e.held.Get(l.Token); !held {
		t.Error("what was leased is not held")
	}
	m := plain("q", "k")
	m.OnConflict, m.Token = engine.Replace, l.Token
	push(t, e, m)
	if _, held := e.held.Get(l.Token); held {
		t.Error("what was replaced is held")
	}
}
