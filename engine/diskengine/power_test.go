package diskengine_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// fate is what is known of a message by the answers so far.
type fate string

const (
	unsure fate = "unsure" // a call is under way: before or after
	kept   fate = "kept"
	taken  fate = "taken" // leased to another process
	gone   fate = "gone"
)

// ledger keeps the fates of the messages of one history, by key.
type ledger struct {
	mu    sync.Mutex
	fates map[string]fate
}

func (l *ledger) set(key string, f fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fates[key] = f
}

// during returns the fates as they are while fn runs: no call begins meanwhile.
func (l *ledger) during(fn func()) map[string]fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
	return maps.Clone(l.fates)
}

// settings stands for the settings of the queue in the ledger, with their revision. The
// first of them say that there may be so many messages, each that follow one more.
const (
	settings  = "settings"
	firstMost = 1_000_000
)

// checkSettings compares the settings of an engine with the revision that was promised.
func checkSettings(t *testing.T, e engine.Engine, promised fate) {
	t.Helper()
	s, revision, err := e.(engine.Configurer).Settings(t.Context(), "q")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.ParseInt(revision, 10, 64); err != nil || revision < string(promised) || s.MaxPending != firstMost+n-1 {
		t.Fatalf("%+v at revision %s, %v; promised %s", s, revision, err, promised)
	}
}

func body(key string) []byte {
	if len(key)%2 == 0 {
		return make([]byte, 3000) // has an entry of its own
	}
	return []byte("body of " + key)
}

// history pushes, cancels, leases, acks and retries, and writes into the ledger
// what each answer promised. It stops at the first error.
func (l *ledger) history(t *testing.T, e engine.Engine) error {
	ctx := t.Context()
	push := func(key string, in time.Duration) error {
		l.set(key, unsure)
		r, err := e.Push(ctx, []engine.Message{message("q", key, in)})
		if err == nil && r[0].Err == nil {
			l.set(key, kept)
		}
		return err
	}
	for i := range 4 {
		revision, err := e.(engine.Configurer).Configure(ctx, "q", engine.Settings{MaxPending: firstMost + int64(i)}, "")
		if err != nil {
			return err
		}
		l.set(settings, fate(revision))
		// These fill the log and the tables in memory, so that both are rotated.
		var many []engine.Message
		for j := range 5 {
			m := message("q", fmt.Sprintf("fill-%d-%d", i, j), 3*time.Hour)
			m.Body = bytes.Repeat(m.Body[:1], 6000)
			many = append(many, m)
			l.set(m.Key, unsure)
		}
		r, err := e.Push(ctx, many)
		if err != nil {
			return err
		}
		for j := range r {
			if r[j].Err != nil {
				return r[j].Err
			}
			l.set(many[j].Key, kept)
		}
		for j := range 3 {
			if err := push(fmt.Sprintf("%d-%d", i*7, j), time.Duration(j)*time.Hour); err != nil {
				return err
			}
		}
		key := fmt.Sprintf("%d-1", i*7)
		l.set(key, unsure)
		if errs, err := e.Cancel(ctx, []engine.Ref{{Queue: "q", Key: key}}); err != nil || errs[0] != nil {
			return errors.Join(append(errs, err)...)
		}
		l.set(key, gone)
		key = fmt.Sprintf("%d-0", i*7)
		l.set(key, unsure)
		g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 1, TTR: time.Hour, Remote: true}})
		if err != nil {
			return err
		}
		if len(g.Queues[0].Messages) != 1 || g.Queues[0].Messages[0].Key != key {
			return fmt.Errorf("leased %v, want %s", g.Queues[0].Messages, key)
		}
		l.set(key, taken)
		if i%2 == 0 {
			continue
		}
		l.set(key, unsure)
		s, err := e.Settle(ctx, []engine.Settlement{{Token: g.Queues[0].Messages[0].Token, Do: engine.Ack}})
		if err == nil {
			err = s[0].Err
		}
		if err != nil {
			return err
		}
		l.set(key, gone)
	}
	return nil
}

func message(queue, key string, in time.Duration) engine.Message {
	return engine.Message{
		Queue: queue, Key: key, Due: engine.When{In: in}, Content: engine.Content{Body: body(key)},
		Terms: engine.Terms{TTR: time.Minute, Remember: remember(key)},
	}
}

// remember is for how long a key is remembered.
func remember(key string) time.Duration {
	if len(key)%2 == 1 || strings.HasSuffix(key, "3") {
		return 24 * time.Hour
	}
	return 0
}

// leases leases many messages and acks the last lots of them, so that most of the
// log is leases whose sync nobody waits for.
func (l *ledger) leases(t *testing.T, e engine.Engine) error {
	const n, lot = 500, 50
	ctx := t.Context()
	var all []engine.Message
	for i := range n {
		all = append(all, message("q", fmt.Sprint(1000+i), 0))
		all[i].Body = body("short")
		l.set(all[i].Key, unsure)
	}
	if _, err := e.Push(ctx, all); err != nil {
		return err
	}
	for _, m := range all {
		l.set(m.Key, kept)
	}
	for i := range n / lot {
		g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: lot, TTR: time.Hour, Remote: true}})
		if err != nil {
			return err
		}
		var acks []engine.Settlement
		for _, m := range g.Queues[0].Messages {
			acks = append(acks, engine.Settlement{Token: m.Token, Do: engine.Ack})
			l.set(m.Key, taken)
		}
		if i < n/lot-2 {
			continue
		}
		for _, m := range g.Queues[0].Messages {
			l.set(m.Key, unsure)
		}
		s, err := e.Settle(ctx, acks)
		if err != nil {
			return err
		}
		for i := range s {
			if s[i].Err != nil {
				return s[i].Err
			}
			l.set(g.Queues[0].Messages[i].Key, gone)
		}
	}
	return nil
}

// live lists the live messages, by key.
func live(t *testing.T, e engine.Engine) map[string]engine.Info {
	t.Helper()
	all := make(map[string]engine.Info)
	for _, state := range []engine.State{engine.Scheduled, engine.Ready, engine.Leased} {
		for q := (engine.ListQuery{Queue: "q", State: state, Limit: 1000, Body: true}); ; {
			page, err := e.(engine.Lister).List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range page.Messages {
				if _, twice := all[i.Key]; twice {
					t.Fatalf("%s is listed twice", i.Key)
				}
				all[i.Key] = i
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	}
	return all
}

// check compares what an engine holds with what was promised: what is listed, and of that
// some by their keys, and all that is not. After a loss of power a lease may be gone, as if
// it had never been.
func check(t *testing.T, e engine.Engine, promised map[string]fate, powerLost bool) {
	t.Helper()
	ctx := t.Context()
	listed, looked, finished := live(t, e), 0, int64(0)
	for key, f := range promised {
		if key == settings {
			checkSettings(t, e, f)
			continue
		}
		info, found := listed[key]
		ended := false
		if looked++; !found || looked%8 == 0 {
			got, err := e.Get(ctx, engine.Ref{Queue: "q", Key: key})
			if err != nil && !errors.Is(err, engine.ErrNotFound) {
				t.Fatalf("%s, %s: %v", key, f, err)
			}
			if ended = got.State == engine.Finished; ended {
				finished++
			}
			if found != (err == nil && !ended) || found && (got.ID != info.ID || got.State != info.State) {
				t.Fatalf("%s is listed: %v, as %s, and found as %s, %v", key, found, info.State, got.State, err)
			}
		}
		if found && strings.Contains(key, "-") && !strings.HasPrefix(key, "fill") && string(info.Body) != string(body(key)) {
			t.Fatalf("%s came back with %d bytes", key, len(info.Body))
		}
		switch {
		case f == gone && found:
			t.Fatalf("%s is back as %s", key, info.State)
		case f == gone && ended != (remember(key) > 0):
			t.Fatalf("%s is gone, remembered: %v", key, ended)
		case f != gone && f != unsure && !found:
			t.Fatalf("%s, %s, is lost", key, f)
		case f == taken && powerLost && info.State == engine.Ready && info.Attempt == 0:
		case f == taken && (info.State != engine.Leased || info.Attempt != 1):
			t.Fatalf("%s was leased and is %s, attempt %d", key, info.State, info.Attempt)
		}
	}
	q, err := e.(engine.Counter).Queue(ctx, "q")
	if err != nil {
		t.Fatal(err)
	}
	if n := q.Scheduled + q.Ready + q.Leased; n != int64(len(listed)) {
		t.Fatalf("counted %d live, listed %d", n, len(listed))
	}
	if q.Finished != finished {
		t.Fatalf("counted %d finished, found %d", q.Finished, finished)
	}
	buckets, err := e.(engine.Forecaster).Forecast(ctx, "q", time.Minute, 4*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var forecast int64
	for _, b := range buckets {
		forecast += b.Count
	}
	if forecast != q.Scheduled+q.Ready {
		t.Fatalf("forecast %d of %d waiting", forecast, q.Scheduled+q.Ready)
	}
}

// TestPowerLoss cuts the power at each operation on the file system, with nothing or with
// half of what was not synced on disk, in turn; with TARRY_TEST_THOROUGH=1 with both.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	losePower(t, true, (*ledger).history)
}

// TestPowerLossWithLeases cuts the power while much that is written is not synced, in
// several blocks of a log and in logs that follow one another.
func TestPowerLossWithLeases(t *testing.T) {
	t.Parallel()
	losePower(t, false, (*ledger).leases)
}

func losePower(t *testing.T, opening bool, history func(l *ledger, t *testing.T, e engine.Engine) error) {
	type loss struct {
		promised map[string]fate
		after    [2]*vfs.MemFS // nil: not looked at
	}
	clock := enginetest.NewClock()
	mem := vfs.NewCrashableMem()
	l := &ledger{fates: map[string]fate{}}
	var mu sync.Mutex
	var losses []loss
	counting := opening
	made := map[string]int{} // files, by extension
	turn, both := rand.IntN(2), os.Getenv("TARRY_TEST_THOROUGH") != ""
	fs := &faultFS{FS: mem, before: func(op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "create" || op == "reuse" {
			made[filepath.Ext(name)]++
		}
		if !counting {
			return nil
		}
		var at loss
		at.promised = l.during(func() {
			half := vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(uint64(len(losses)), 1))}
			for i, left := range []vfs.CrashCloneCfg{{}, half} {
				if both || (len(losses)+turn)%2 == i {
					at.after[i] = mem.CrashClone(left)
				}
			}
		})
		losses = append(losses, at)
		return nil
	}}
	cfg := diskengine.Config{FS: fs, Now: clock.Now, Logger: quiet, MemTableBytes: smallTable, CacheBytes: 1 << 20}
	e, err := diskengine.Open("data", &cfg)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	counting = true
	mu.Unlock()
	if err := history(l, t, e); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for k := range losses {
		for i, mem := range losses[k].after {
			if mem == nil {
				continue
			}
			cfg.FS = mem
			e, err := diskengine.Open("data", &cfg)
			if err != nil {
				t.Fatalf("power lost at operation %d, clone %d: %v", k+1, i, err)
			}
			check(t, e, losses[k].promised, true)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		losses[k] = loss{}
	}
	t.Logf("power was lost at each of %d operations", len(losses))
	if made[".log"] < 3 || made[".sst"] < 2 {
		t.Errorf("the history made only %v", made)
	}
}
