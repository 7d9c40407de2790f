package targettest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/intake"
)

// Intakes are running intakes with their implied routes.
type Intakes struct {
	*intake.Runner
	t testing.TB

	// End ends them, and waits. The test's end does so too.
	End func()
}

// Take runs intakes that push with a client.
func Take(t testing.TB, c *tarry.Client, intakes ...intake.Intake) *Intakes {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	w := &Intakes{t: t, Runner: intake.NewRunner(c, &intake.RunnerConfig{Logger: quiet})}
	router := forward.NewRouter(c, &forward.RouterConfig{Logger: quiet})
	if err := errors.Join(w.Set(intakes), router.Set(intake.Intakes(intakes).Routes())); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	for _, run := range []func(context.Context) error{w.Run, router.Run} {
		ran.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	w.End = sync.OnceFunc(func() { cancel(); ran.Wait() })
	t.Cleanup(w.End)
	return w
}

// Awaits waits until the status of the first intake is as wanted.
func (w *Intakes) Awaits(what string, holds func(intake.Status) bool) intake.Status {
	w.t.Helper()
	for end := time.Now().Add(2 * Patience); ; time.Sleep(5 * time.Millisecond) {
		st := w.Status()[0]
		if holds(st) {
			return st
		}
		if time.Now().After(end) {
			w.t.Fatalf("it is not so: %s; the status is %+v", what, st)
		}
	}
}

// Fails waits until the first intake fails with a code, and checks that it says what to do in
// one line without the password "geheim".
func (w *Intakes) Fails(code string) intake.Status {
	w.t.Helper()
	st := w.Awaits("it fails with "+code, func(st intake.Status) bool { return st.State == intake.Failing && st.Code == code })
	if st.Hint == "" || strings.ContainsAny(st.Error, "\r\n") || strings.Contains(st.Error+st.Hint, "geheim") {
		w.t.Errorf("it says %q, %q", st.Error, st.Hint)
	}
	return st
}

// Runs waits until the first intake receives.
func (w *Intakes) Runs() {
	w.t.Helper()
	w.Awaits("it runs", func(st intake.Status) bool { return st.State == intake.Running })
}

// Store returns a store in memory.
func Store(t testing.TB) *tarry.Client {
	t.Helper()
	c, err := tarry.Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
