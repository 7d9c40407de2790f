package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

var reports = tarry.NewTopic[string]("reports")

// runSchedules runs the schedules of a client, until the test ends or stop is called.
func runSchedules(t *testing.T, c *tarry.Client) (stop func()) {
	t.Helper()
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Schedules: true})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, tarry.ErrClosed) {
			t.Error(err)
		}
	}
}

// scheduled returns a schedule of the topic reports.
func scheduled(t *testing.T, name, spec string) tarry.Schedule {
	t.Helper()
	s, err := tarry.NewSchedule(name, spec, reports, "body", tarry.Header("h", "v"), tarry.MaxAttempts(3))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func set(t *testing.T, c *tarry.Client, s tarry.Schedule) tarry.ScheduleInfo {
	t.Helper()
	info, err := c.SetSchedule(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// pushed returns the messages of the topic reports, by their instants in order.
func pushed(t *testing.T, c *tarry.Client) (all []tarry.Info) {
	t.Helper()
	for _, state := range []tarry.State{tarry.Ready, tarry.Scheduled} {
		for m, err := range c.List(t.Context(), reports.Queue(), state) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
	}
	return all
}

func header(m *tarry.Info, name string) string {
	for _, h := range m.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

func TestScheduleFires(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		defer runSchedules(t, c)()
		start := time.Now()
		info := set(t, c, scheduled(t, "every", "@every 1m"))
		if want := start.Truncate(time.Minute).Add(time.Minute); !info.Next.Equal(want) || info.State != tarry.ScheduleActive {
			t.Errorf("%+v, not next at %v", info, want)
		}
		pass(10*time.Minute + time.Second)
		all := pushed(t, c)
		if len(all) != 10 {
			t.Fatalf("%d messages, not 10", len(all))
		}
		for i, m := range all {
			at := info.Next.Add(time.Duration(i) * time.Minute)
			stamp := at.UTC().Format(time.RFC3339)
			if !m.Due.Equal(at) || m.Key != "every@"+stamp || string(m.Body) != "body" || m.MaxAttempts != 3 || header(&m, "h") != "v" ||
				header(&m, tarry.ScheduleHeader) != "every" || header(&m, tarry.InstantHeader) != stamp {
				t.Errorf("at %v: %+v", at, m)
			}
		}
		got, err := c.Schedule(t.Context(), "every")
		if err != nil || len(got.Runs) != 10 || got.Runs[0].ID != all[9].ID || got.Error != "" || got.Revision != info.Revision {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A schedule that is stored again unchanged stays as it is; a revision guards a change.
func TestScheduleRevisions(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		s := scheduled(t, "daily", "0 2 * * *")
		if _, err := c.SetSchedule(t.Context(), s, "17"); !errors.Is(err, tarry.ErrStale) {
			t.Errorf("set at a revision of none: %v", err)
		}
		first, err := c.SetSchedule(t.Context(), s, "0")
		if err != nil {
			t.Fatal(err)
		}
		if again := set(t, c, s); again.Revision != first.Revision {
			t.Errorf("the same made revision %s of %s", again.Revision, first.Revision)
		}
		if _, err := c.SetSchedule(t.Context(), s, "0"); !errors.Is(err, tarry.ErrStale) {
			t.Errorf("set as new: %v", err)
		}
		s.Zone = "Europe/Berlin"
		second, err := c.SetSchedule(t.Context(), s, first.Revision)
		if err != nil || second.Revision == first.Revision || second.Next.Equal(first.Next) {
			t.Errorf("%+v, %v", second, err)
		}
		s.Zone = "America/New_York"
		if _, err := c.SetSchedule(t.Context(), s, first.Revision); !errors.Is(err, tarry.ErrStale) {
			t.Errorf("set at an old revision: %v", err)
		}
		if err := c.RemoveSchedule(t.Context(), "daily", first.Revision); !errors.Is(err, tarry.ErrStale) {
			t.Errorf("removed at an old revision: %v", err)
		}
		if m, err := c.Get(t.Context(), tarry.ByKey("daily").Of(tarry.ScheduleQueue)); err != nil || m.State != tarry.Scheduled || !m.Due.Equal(second.Next) {
			t.Errorf("after that it is %v, due at %v, not %v, %v", m.State, m.Due, second.Next, err)
		}
		if err := c.RemoveSchedule(t.Context(), "daily", second.Revision); err != nil {
			t.Error(err)
		}
		if _, err := c.Schedule(t.Context(), "daily"); !errors.Is(err, tarry.ErrNotFound) {
			t.Errorf("after its removal: %v", err)
		}
		third := set(t, c, s)
		if third.Revision == first.Revision || third.Revision == second.Revision {
			t.Errorf("a new schedule has the revision %s of an old one", third.Revision)
		}
	})
}

func TestSchedulePauseAndTrigger(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		defer runSchedules(t, c)()
		set(t, c, scheduled(t, "hourly", "@hourly"))
		pass(90 * time.Minute)
		if p, err := c.PauseSchedule(t.Context(), "hourly"); err != nil || p.State != tarry.SchedulePaused || !p.Next.IsZero() {
			t.Errorf("%+v, %v", p, err)
		}
		n := len(pushed(t, c))
		pass(5 * time.Hour)
		if got := len(pushed(t, c)); got != n {
			t.Errorf("%d messages came in the pause", got-n)
		}
		for range 3 {
			run, err := c.TriggerSchedule(t.Context(), "hourly")
			if err != nil || !run.Manual {
				t.Fatalf("%+v, %v", run, err)
			}
			if m, err := c.Get(t.Context(), tarry.ByKey(run.Key).Of("reports")); err != nil || m.State != tarry.Ready {
				t.Errorf("%+v, %v", m, err)
			}
		}
		if got := len(pushed(t, c)); got != n+3 {
			t.Errorf("three triggers made %d messages", got-n)
		}
		r, err := c.ResumeSchedule(t.Context(), "hourly")
		if err != nil || time.Until(r.Next) > time.Hour || len(r.Runs) != n+3 {
			t.Errorf("%+v, %v", r, err)
		}
		pass(time.Hour)
		if got := len(pushed(t, c)); got != n+4 {
			t.Errorf("%d messages in the hour after the resume", got-n-3)
		}
	})
}

// What nothing ran is made up for as the schedule says.
func TestScheduleCatchUp(t *testing.T) {
	for catchUp, want := range map[tarry.CatchUp]int{tarry.CatchUpLast: 1, tarry.CatchUpSkip: 0, tarry.CatchUpAll: 1000} {
		t.Run(catchUp.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *tarry.Client) {
				s := scheduled(t, "s", "@every 2m")
				s.CatchUp = catchUp
				set(t, c, s)
				pass(2001*2*time.Minute + 90*time.Second)
				defer runSchedules(t, c)()
				synctest.Wait()
				all := pushed(t, c)
				if len(all) != want {
					t.Fatalf("%d messages, not %d", len(all), want)
				}
				if last := time.Now().Truncate(2 * time.Minute); want > 0 && !all[want-1].Due.Equal(last) {
					t.Errorf("the last is of %v, not %v", all[want-1].Due, last)
				}
				pass(2 * time.Minute)
				if got := len(pushed(t, c)); got != want+1 {
					t.Errorf("%d messages came on time", got-want)
				}
			})
		})
	}
}

// Whichever call fails, and wherever a runner dies, each instant makes one message.
func TestScheduleRunnerDies(t *testing.T) {
	for _, acked := range []bool{false, true} {
		for _, fate := range []string{"push is lost", "push counts", "move is lost", "move counts"} {
			t.Run(fmt.Sprint(fate, ", acked ", acked), func(t *testing.T) {
				e := newStage()
				e.caps = func(c *engine.Capabilities) { c.Coalesce = 0 }
				var failing atomic.Bool
				e.push = func(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
					moves := msgs[0].Queue == tarry.ScheduleQueue
					if !failing.Load() || moves != strings.HasPrefix(fate, "move") {
						return e.Engine.Push(ctx, msgs)
					}
					if strings.HasSuffix(fate, "counts") {
						_, _ = e.Engine.Push(ctx, msgs)
					}
					return nil, engine.ErrUnavailable
				}
				e.settle = func(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
					if failing.Load() {
						return nil, engine.ErrUnavailable // it is dead, and can settle nothing
					}
					return e.Engine.Settle(ctx, s)
				}
				bubbleOn(t, e, func(t *testing.T, c *tarry.Client) {
					set(t, c, scheduled(t, "s", "@every 10m"))
					stop := runSchedules(t, c)
					pass(9 * time.Minute)
					failing.Store(true)
					pass(2 * time.Minute)
					failing.Store(false)
					if acked {
						ackAll(t, c)
					}
					pass(5 * time.Minute)
					stop()
					seen := len(pushed(t, c))
					if acked {
						seen = 1
					}
					if got := len(pushed(t, c)); seen != 1 || acked && got > 1 {
						t.Errorf("%d messages of one instant", got)
					}
					info, err := c.Schedule(t.Context(), "s")
					if err != nil || len(info.Runs) != 1 {
						t.Errorf("%+v, %v", info, err)
					}
				})
			})
		}
	}
}

// ackAll acks what is ready.
func ackAll(t *testing.T, c *tarry.Client) {
	t.Helper()
	got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"reports"}, Max: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got.Messages {
		if _, err := c.Settle(t.Context(), []tarry.Settlement{{Token: m.Token, Do: tarry.DoAck}}); err != nil {
			t.Fatal(err)
		}
	}
}

// A message that is dead before a runner repeats its push is not made again.
func TestScheduleRunnerDiesAndSoDoesTheMessage(t *testing.T) {
	e := newStage()
	var failing atomic.Bool
	e.push = func(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
		if failing.Load() && msgs[0].Queue == tarry.ScheduleQueue {
			return nil, engine.ErrUnavailable
		}
		return e.Engine.Push(ctx, msgs)
	}
	bubbleOn(t, e, func(t *testing.T, c *tarry.Client) {
		set(t, c, scheduled(t, "s", "@every 10m"))
		defer runSchedules(t, c)()
		pass(9 * time.Minute)
		failing.Store(true)
		pass(time.Minute)
		got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"reports"}, Max: 1})
		if err != nil || len(got.Messages) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		if _, err := c.Settle(t.Context(), []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoBury}}); err != nil {
			t.Fatal(err)
		}
		failing.Store(false)
		pass(5 * time.Minute)
		if all := pushed(t, c); len(all) != 0 {
			t.Errorf("it came again: %+v", all)
		}
	})
}

// Many runners on one store make one message an instant.
func TestScheduleManyRunners(t *testing.T) {
	e := memengine.New(nil)
	bubbleOn(t, e, func(t *testing.T, c *tarry.Client) {
		const schedules, minutes = 50, 20
		for i := range schedules {
			s := scheduled(t, fmt.Sprint("s", i), "@every 1m")
			s.Jitter = 30 * time.Second
			set(t, c, s)
		}
		for range 4 {
			defer runSchedules(t, tarry.New(e, nil))()
		}
		pass(minutes*time.Minute + 30*time.Second)
		keys := make(map[string]int)
		offsets := make(map[string]time.Duration)
		for _, m := range pushed(t, c) {
			keys[m.Key]++
			name, stamp, _ := strings.Cut(m.Key, "@")
			at, err := time.Parse(time.RFC3339, stamp)
			offset := m.Due.Sub(at)
			if old, seen := offsets[name]; err != nil || seen && old != offset || offset < 0 || offset >= 30*time.Second {
				t.Errorf("%s is due %v after it: before that %v, %v", m.Key, offset, old, err)
			}
			offsets[name] = offset
		}
		if len(keys) != schedules*minutes {
			t.Errorf("%d messages, not %d", len(keys), schedules*minutes)
		}
		different := make(map[time.Duration]bool)
		for _, o := range offsets {
			different[o] = true
		}
		if len(different) < schedules/2 {
			t.Errorf("%d schedules have %d offsets", schedules, len(different))
		}
	})
}

// A queue that is full stops its own schedules only, and says so.
func TestScheduleForAFullQueue(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		defer runSchedules(t, c)()
		if _, err := c.Configure(t.Context(), "reports", tarry.Settings{MaxPending: 1}, ""); err != nil {
			t.Fatal(err)
		}
		set(t, c, scheduled(t, "full", "@every 1m"))
		other := scheduled(t, "other", "@every 1m")
		other.Draft.Queue = "elsewhere"
		set(t, c, other)
		pass(5 * time.Minute)
		full, err := c.Schedule(t.Context(), "full")
		if err != nil || !strings.Contains(full.Error, "max_pending") || len(full.Runs) != 1 {
			t.Errorf("%+v, %v", full, err)
		}
		if info, err := c.Schedule(t.Context(), "other"); err != nil || info.Error != "" || len(info.Runs) < 4 {
			t.Errorf("%+v, %v", info, err)
		}
		ackAll(t, c)
		pass(2 * time.Minute)
		if full, err = c.Schedule(t.Context(), "full"); err != nil || len(full.Runs) != 2 {
			t.Errorf("%+v, %v", full, err)
		}
	})
}

func TestSchedulesAreListed(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		for name, spec := range map[string]string{"sooner": "@every 1h", "later": "@every 2h"} {
			set(t, c, scheduled(t, name, spec))
		}
		gone := scheduled(t, "gone", "@daily")
		gone.Start, gone.End = time.Now().Add(-72*time.Hour), time.Now().Add(-24*time.Hour)
		set(t, c, gone)
		if page, _, err := c.Schedules(t.Context(), "", 0); err != nil || len(page) != 3 || page[0].Name != "sooner" || page[2].Name != "gone" {
			t.Errorf("new ones are listed as %+v, %v", page, err)
		}
		for _, name := range []string{"sooner", "later", "gone"} {
			if err := c.RemoveSchedule(t.Context(), name, ""); err != nil {
				t.Fatal(err)
			}
		}
		stop := runSchedules(t, c)
		for i := range 25 {
			set(t, c, scheduled(t, fmt.Sprintf("s%02d", i), fmt.Sprintf("%d 3 * * *", i)))
		}
		if _, err := c.PauseSchedule(t.Context(), "s03"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		pass(3*time.Hour + 90*time.Second) // s00 and s01 are overdue
		var names []string
		for after, pages := "", 0; ; pages++ {
			page, next, err := c.Schedules(t.Context(), after, 7)
			if err != nil || len(page) > 7 || pages > 9 {
				t.Fatal(len(page), pages, err)
			}
			for _, s := range page {
				names = append(names, s.Name)
			}
			if after = next; after == "" {
				break
			}
		}
		if len(names) != 25 || names[0] != "s00" || names[1] != "s01" || names[2] != "s02" || names[3] != "s04" || names[24] != "s03" {
			t.Error(names)
		}
		if _, _, err := c.Schedules(t.Context(), "nonsense", 0); !errors.Is(err, tarry.ErrInvalid) {
			t.Error(err)
		}
	})
}

func TestScheduleEnds(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		defer runSchedules(t, c)()
		s := scheduled(t, "s", "@every 1m")
		s.Start, s.End = time.Now().Add(30*time.Minute), time.Now().Add(33*time.Minute)
		set(t, c, s)
		pass(2 * time.Hour)
		info, err := c.Schedule(t.Context(), "s")
		if all := pushed(t, c); len(all) != 4 || err != nil || info.State != tarry.ScheduleEnded || !info.Next.IsZero() {
			t.Errorf("%d messages, %+v, %v", len(all), info, err)
		}
	})
}

func TestScheduleInvalid(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		for text, change := range map[string]func(s *tarry.Schedule){
			"no name":          func(s *tarry.Schedule) { s.Name = "" },
			"is not allowed":   func(s *tarry.Schedule) { s.Name = "a b" },
			"never":            func(s *tarry.Schedule) { s.Spec = "0 0 30 2 *" },
			"1s":               func(s *tarry.Schedule) { s.Spec = "@every 1ms" },
			"Mars/Olympus":     func(s *tarry.Schedule) { s.Zone = "Mars/Olympus" },
			"years 0 to":       func(s *tarry.Schedule) { s.End = time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC) },
			"0 to 9999":        func(s *tarry.Schedule) { s.Start = time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC) },
			"the jitter":       func(s *tarry.Schedule) { s.Jitter = 25 * time.Hour },
			"a key":            func(s *tarry.Schedule) { s.Draft.Key = "k" },
			"for schedules":    func(s *tarry.Schedule) { s.Draft.Queue = tarry.ScheduleQueue },
			"the queue's name": func(s *tarry.Schedule) { s.Draft.Queue = "ä" },
			"push a reference": func(s *tarry.Schedule) { s.Draft.Body = make([]byte, 64<<10+1) },
			"are set by the":   func(s *tarry.Schedule) { s.Draft.Headers = []tarry.MessageHeader{{Name: tarry.InstantHeader}} },
			"catch-up":         func(s *tarry.Schedule) { s.CatchUp = 9 },
		} {
			s := scheduled(t, "s", "0 2 * * *")
			change(&s)
			if _, err := c.SetSchedule(t.Context(), s, ""); !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), text) {
				t.Errorf("%q is not in: %v", text, err)
			}
		}
		for _, call := range []func() error{
			func() error { _, err := c.PauseSchedule(t.Context(), "none"); return err },
			func() error { _, err := c.ResumeSchedule(t.Context(), "none"); return err },
			func() error { _, err := c.TriggerSchedule(t.Context(), "none"); return err },
			func() error { return c.RemoveSchedule(t.Context(), "none", "") },
		} {
			if err := call(); !errors.Is(err, tarry.ErrNotFound) {
				t.Error(err)
			}
		}
	})
}

// A schedule that was stored by other rules of its time zone is due by those of the program
// that runs it.
func TestScheduleStoredByOtherRules(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		stop := runSchedules(t, c)
		first := set(t, c, scheduled(t, "s", "0 2 * * *")).Next
		synctest.Wait()
		stop()
		for _, wrong := range []time.Duration{time.Hour, -time.Hour} {
			if _, err := c.Reschedule(t.Context(), tarry.ByKey("s").Of(tarry.ScheduleQueue), tarry.At(first.Add(wrong))); err != nil {
				t.Fatal(err)
			}
			stop = runSchedules(t, c)
			synctest.Wait()
			m, err := c.Get(t.Context(), tarry.ByKey("s").Of(tarry.ScheduleQueue))
			if err != nil || !m.Due.Equal(first) {
				t.Errorf("%v off: it is due at %v, %v", wrong, m.Due, err)
			}
			stop()
		}
		defer runSchedules(t, c)()
		pass(time.Until(first))
		if all := pushed(t, c); len(all) != 1 || !all[0].Due.Equal(first) {
			t.Errorf("%+v", all)
		}
	})
}

// Steps of the store's clock make no instant twice, and lose none but those that were missed.
func TestScheduleWhileTheClockSteps(t *testing.T) {
	var step atomic.Int64
	e := memengine.New(&memengine.Config{Now: func() time.Time { return time.Now().Add(time.Duration(step.Load())) }})
	bubbleOn(t, e, func(t *testing.T, c *tarry.Client) {
		defer runSchedules(t, c)()
		s := scheduled(t, "s", "@every 1m")
		s.CatchUp = tarry.CatchUpAll
		first := set(t, c, s).Next
		for _, by := range []time.Duration{0, -time.Hour, 3 * time.Hour, -30 * time.Minute, time.Hour} {
			step.Add(int64(by))
			pass(10*time.Minute + 30*time.Second)
		}
		pass(3 * time.Hour)
		now := time.Now().Add(time.Duration(step.Load()))
		instants := make(map[time.Time]int)
		for _, m := range pushed(t, c) {
			instants[m.Due]++
		}
		for at := first; !at.After(now); at = at.Add(time.Minute) {
			if instants[at] != 1 {
				t.Errorf("%v made %d messages", at, instants[at])
			}
			delete(instants, at)
		}
		if len(instants) > 0 {
			t.Errorf("too many: %v", instants)
		}
	})
}
