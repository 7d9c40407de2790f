package outage

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Crowded takes all connections of a server by connect, and then gives them back.
func Crowded(t *testing.T, raw string, connect func(context.Context) (hangUp func(), err error)) {
	p := servertest.StartProxy(t, raw)
	c := Open(t, p.URL())
	l := NewLedger(t, queue)
	l.Work(c, tarry.WorkerConfig{})
	l.Push(c, "before", 0)
	l.Rest(patience)

	var all []func()
	p.Refuse(true) // others shall get the worker's connections
	p.Cut()
	full := 0
	for full < 3 { // the server may release cut connections a moment later
		hangUp, err := connect(t.Context())
		if err != nil {
			full++
			time.Sleep(10 * time.Millisecond)
			continue
		}
		all = append(all, hangUp)
	}
	p.Refuse(false)
	t.Logf("others have %d connections", len(all))
	err := errors.New(engine.HintUnknown)
	for deadline := time.Now().Add(patience); unknown(err) && time.Now().Before(deadline); {
		_, err = c.Push(t.Context(), queue, nil, tarry.Key("crowded"), tarry.OnConflict(tarry.Keep)) // perhaps on a cut connection
	}
	Says(t, err, tarry.ErrUnavailable, "max_connections")
	other, err := tarry.Open(t.Context(), raw, nil)
	if err == nil {
		err = errors.Join(errors.New("it was opened"), other.Close())
	}
	Says(t, err, tarry.ErrUnavailable, "max_connections")
	for _, hangUp := range all {
		hangUp()
	}
	l.Push(c, "after", 0)
	l.Rest(patience)
}
