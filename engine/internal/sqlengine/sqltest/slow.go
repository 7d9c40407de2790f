package sqltest

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// A slow answer of the database does not delay the due time of the next push.
func slowAnswer(t *testing.T, bed Bed) {
	const slow, late = 300 * time.Millisecond, 100 * time.Millisecond
	e := bed.Open(t, func(s sqlengine.Store) sqlengine.Store {
		return &between{Store: s, late: func() { time.Sleep(slow) }}
	})
	push(t, e, hour("slow"))
	r := push(t, e, hour("next"))
	g, err := bed.Open(t, nil).Lease(patience(t), []engine.Want{{Queue: "q", Max: 1}})
	ok(t, err)
	if most := g.Now.Add(time.Hour + late); r[0].Due.After(most) {
		t.Errorf("the next message is due at %v, %v too late", r[0].Due, r[0].Due.Sub(most)+late)
	}
}
