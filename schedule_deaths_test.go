package tarry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/enginetest/scheduletest"
	"github.com/tarryhq/tarry/engine/memengine"
)

// Workers run schedules for twelve days, through a change of the clock, and die at random calls
// of the engine: each instant of the oracle makes one message.
func TestSchedulesWhileWorkersDie(t *testing.T) {
	r := scheduletest.Rand(t)
	from := time.Date(2027, time.March, 22, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(0, 0, 12)
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	walk := scheduletest.NewWalk(zone, from, to, time.Minute)
	specs, want := make(map[string]string), make(map[string]bool)
	for len(specs) < 8 {
		e := scheduletest.Some(r, false)
		instants := walk.Instants(e)
		if len(instants) < 20 || len(instants) > 500 {
			continue
		}
		name := string(rune('a' + len(specs)))
		specs[name] = e.Text
		for _, at := range instants {
			want[name+"@"+at.Format(time.RFC3339)] = true
		}
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(from.Add(-time.Second)))
		store := &scheduletest.Memory{Engine: memengine.New(nil)}
		var came list[tarry.Info]
		lives := 0
		for ; time.Now().Before(to.Add(time.Minute)); lives++ {
			e, err := scheduletest.Open(store)
			if err != nil {
				t.Fatal(err)
			}
			c := tarry.New(e, nil)
			for name, spec := range specs {
				if s := scheduled(t, name, spec); lives == 0 {
					s.Zone, s.CatchUp = zone.String(), tarry.CatchUpAll
					set(t, c, s)
				}
			}
			w := tarry.NewWorker(c, &tarry.WorkerConfig{Schedules: true})
			tarry.Handle(w, reports, func(_ context.Context, m *tarry.Message[string]) error {
				if time.Now().Before(m.Due) {
					t.Errorf("%s came early", m.Key)
				}
				came.add(m.Info)
				return nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Until(to.Add(2*time.Minute)))
			store.Died = cancel
			if time.Until(to) > time.Hour {
				store.KillIn(1 + r.IntN(800))
			}
			_ = w.Run(ctx)
			cancel()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Duration(r.IntN(20)) * time.Second)
		}
		ids := make(map[string]tarry.ID)
		for _, m := range came.all() {
			if id, again := ids[m.Key]; again && id != m.ID {
				t.Errorf("%s came as %s and as %s", m.Key, id, m.ID)
			}
			ids[m.Key] = m.ID
			if !want[m.Key] && m.Due.Before(to) {
				t.Errorf("%s came", m.Key)
			}
		}
		for key := range want {
			if ids[key] == (tarry.ID(0)) {
				t.Errorf("%s did not come", key)
			}
		}
		t.Logf("%d messages, %d deaths", len(ids), lives-1)
		if lives < 4 {
			t.Error("this is too little to prove anything")
		}
	})
}
