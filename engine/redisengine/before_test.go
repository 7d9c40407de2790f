package redisengine

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// beforeSettings is a store as it was written before queues had settings: the commands
// that make it, and in comments its clock, its messages and the token of its lease.
//
//go:embed testdata/before-settings.txt
var beforeSettings string

// TestStoreFromBeforeSettings goes on with one: messages in all states are found, settled,
// cancelled, redriven and replaced, and settings and memories come to be as in any store.
func TestStoreFromBeforeSettings(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	clock := enginetest.NewClock()
	ids := map[string]engine.ID{}
	token := ""
	for line := range strings.Lines(beforeSettings) {
		line = strings.TrimSpace(line)
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "# now "):
			ms, err := strconv.ParseInt(fields[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			clock.Set(time.UnixMilli(ms))
		case strings.HasPrefix(line, "# id "):
			id, err := engine.ParseID(fields[3])
			if err != nil {
				t.Fatal(err)
			}
			ids[fields[2]] = id
		case strings.HasPrefix(line, "# token "):
			token = fields[2]
		default:
			args := []string{fields[0]}
			for rest := line[len(fields[0]):]; strings.TrimSpace(rest) != ""; {
				rest = strings.TrimSpace(rest)
				quoted, err := strconv.QuotedPrefix(rest)
				if err != nil {
					t.Fatalf("%v: %q", err, rest)
				}
				arg, _ := strconv.Unquote(quoted) // it is one
				args, rest = append(args, arg), rest[len(quoted):]
			}
			s.Do(args...)
		}
	}
	e := openStore(t, s.URL(), "prefix=old")
	e.stopped = clock.Now
	ctx := t.Context()
	byKey := func(key string) engine.Ref { return engine.Ref{Queue: "q", Key: key} }
	for key, want := range map[string]engine.State{
		"dead": engine.Dead, "retried": engine.Scheduled, "leased": engine.Leased, "scheduled": engine.Scheduled,
		"rare": engine.Scheduled, "large": engine.Scheduled, "ready": engine.Ready,
	} {
		i, err := e.Get(ctx, byKey(key))
		if err != nil || i.State != want || i.ID != ids[key] || len(i.Body) == 0 || i.Remember != 0 {
			t.Errorf("%s: %+v, %v", key, i, err)
		}
	}
	if _, revision, err := e.Settings(ctx, "q"); err != nil || revision != "0" {
		t.Errorf("revision %q, %v", revision, err)
	}
	if i, err := e.Queue(ctx, "q"); err != nil || i.Scheduled != 4 || i.Ready != 1 || i.Leased != 1 || i.Dead != 1 || i.Finished != 0 {
		t.Errorf("%+v, %v", i, err)
	}
	if _, err := e.Configure(ctx, "q", engine.Settings{Defaults: engine.Terms{Remember: time.Hour}, InFlight: 1, DeadMax: 1}, "0"); err != nil {
		t.Fatal(err)
	}
	if g := enginetest.MustLease(t, e, "q", 1); !g.Held || len(g.Messages) > 0 {
		t.Errorf("with one leased: %+v", g)
	}
	if s := settle1(t, e, engine.Settlement{Token: token, Do: engine.Ack}); s.Err != nil || s.State != engine.Gone {
		t.Errorf("%+v", s)
	}
	// What was pushed before is not remembered, what replaces it is.
	if _, err := e.Get(ctx, byKey("leased")); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("acked: %v", err)
	}
	for _, key := range []string{"scheduled", "rare", "large"} {
		m := plain("q", key)
		m.OnConflict, m.Due.In = engine.Replace, time.Hour
		if r := push(t, e, m); r[0].ID != ids[key] || r[0].Outcome != engine.Replaced {
			t.Errorf("%s: %+v", key, r)
		}
	}
	errs, err := e.Cancel(ctx, []engine.Ref{byKey("scheduled"), byKey("retried"), {Queue: "q", ID: ids["rare"]}, {Queue: "q", Key: "large", IfState: engine.Scheduled}})
	if err != nil || fmt.Sprint(errs) != "[<nil> <nil> <nil> <nil>]" {
		t.Errorf("%v, %v", errs, err)
	}
	for key, want := range map[string]engine.Ending{"scheduled": engine.Cancelled, "rare": engine.Cancelled, "large": engine.Cancelled, "retried": 0} {
		if i, err := e.Get(ctx, byKey(key)); i.Ending != want || (want == 0) != errors.Is(err, engine.ErrNotFound) {
			t.Errorf("%s: %+v, %v", key, i, err)
		}
	}
	if n, err := e.Redrive(ctx, "q", nil, 0); err != nil || n.Redriven != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	for range 2 { // the one that was ready, and the one that was dead; the latter stays
		l := enginetest.MustLease(t, e, "q", 5).Messages
		if len(l) != 1 {
			t.Fatalf("%+v", l)
		}
		if s := settle1(t, e, engine.Settlement{Token: l[0].Token, Do: engine.Bury}); s.Err != nil {
			t.Error(s.Err)
		}
		clock.Advance(time.Second)
	}
	if i, err := e.Queue(ctx, "q"); err != nil || i != (engine.QueueInfo{Queue: "q", Dead: 1, Finished: 3}) {
		t.Errorf("%+v, %v", i, err)
	}
}
