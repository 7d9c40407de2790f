package diskengine_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
)

// A store whose directory is deleted, moved, or replaced by that of another stops: no push is
// answered, readiness fails, and the log says why. The other store is left alone.
func TestDirectoryGoneStops(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows keeps a directory whose files are open")
	}
	for _, how := range []string{"deleted", "moved", "replaced"} {
		for _, first := range []string{"push", "ready"} {
			t.Run(how+", "+first, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "data")
				var log bytes.Buffer // written to until Close
				open := func(logger *slog.Logger) *diskengine.Engine {
					e, err := diskengine.Open(dir, &diskengine.Config{Logger: logger, MinFreeBytes: -1, BallastBytes: -1})
					if err != nil {
						t.Fatal(err)
					}
					return e
				}
				e := open(slog.New(slog.NewTextHandler(&log, nil)))
				if err := pushAll(t, e, message("q", "a", time.Hour)); err != nil {
					t.Fatal(err)
				}
				away := func() error { return os.Rename(dir, dir+"-moved") }
				if how == "deleted" { // at once: the log, which is made longer ahead, shall not miss a part of it before
					away = func() error { return errors.Join(os.Rename(dir, dir+"-moved"), os.RemoveAll(dir+"-moved")) }
				}
				if err := away(); err != nil {
					t.Fatal(err)
				}
				if how == "replaced" {
					other := open(quiet)
					defer func() {
						if _, err := os.Stat(filepath.Join(dir, "HOLDER")); err != nil {
							t.Error(err)
						}
						if err := errors.Join(pushAll(t, other, message("q", "b", time.Hour)), other.Close()); err != nil {
							t.Errorf("the other store: %v", err)
						}
					}()
				}
				ask := func(what string) {
					err := e.Ready(t.Context())
					if what == "push" {
						_, err = e.Push(t.Context(), []engine.Message{message("q", "c", time.Hour)})
					}
					if !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "deleted or moved") || strings.Contains(err.Error(), "is lost") {
						t.Errorf("%s: %v", what, err)
					}
				}
				ask(first)
				ask("push")
				ask("ready")
				if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "a"}); !errors.Is(err, engine.ErrUnavailable) {
					t.Errorf("get: %v", err)
				}
				_ = e.Close()
				if lines := log.String(); !strings.Contains(lines, "deleted or moved") || strings.Contains(lines, "is kept") {
					t.Errorf("the log says %q", lines)
				}
			})
		}
	}
}
