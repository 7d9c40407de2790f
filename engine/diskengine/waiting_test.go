package diskengine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
)

// TestSinglePushWaitsForHalfAMinute has the disk be behind, and says what a client is told of it: nothing
// for as long as docs/engines/disk.md says, then that the store does not answer and that nothing was pushed,
// which is so.
func TestSinglePushWaitsForHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := starve(t)
		defer e.let()
		const others = 4
		answers := e.waits(t, t.Context(), others)
		c := tarry.New(e.Engine, &tarry.Config{Logger: quiet})
		begun := time.Now()
		_, err := c.Push(t.Context(), "q", noise(1000), tarry.Key("a"))
		if took := time.Since(begun); !errors.Is(err, tarry.ErrUnavailable) || !strings.Contains(err.Error(), "nothing was pushed: the disk is behind") || strings.Contains(err.Error(), "unknown") || took.Round(time.Second) != 30*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		e.let()
		for range others {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if _, err := c.Get(t.Context(), tarry.ByKey("a").Of("q")); !errors.Is(err, tarry.ErrNotFound) {
			t.Errorf("what was not pushed: %v", err)
		}
		if _, err := c.Push(t.Context(), "q", noise(1000), tarry.Key("a")); err != nil {
			t.Errorf("once the disk has caught up: %v", err)
		}
		if err := errors.Join(c.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseWhileManyPushesWait closes a client while the disk is behind, and more single pushes wait than the
// engine gets at a time: it waits for those that the engine has, and for no others.
func TestCloseWhileManyPushesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := starve(t)
		defer e.let()
		const others, many = 4, 3000
		answers := e.waits(t, t.Context(), others)
		c := tarry.New(e.Engine, &tarry.Config{Logger: quiet})
		pushed := make(chan error, many)
		for range many {
			go func() {
				_, err := c.Push(t.Context(), "q", nil)
				pushed <- err
			}()
		}
		time.Sleep(time.Second)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		refused, behind := 0, 0
		for range many {
			switch err := <-pushed; {
			case errors.Is(err, tarry.ErrClosed):
				refused++
			case errors.Is(err, tarry.ErrUnavailable):
				behind++
			default:
				t.Errorf("a push: %v", err)
			}
		}
		if refused == 0 || behind == 0 {
			t.Errorf("%d were refused, for %d the disk was behind", refused, behind)
		}
		e.let()
		for range others {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if i, err := e.Queue(t.Context(), "q"); err != nil || i.Ready > 0 {
			t.Errorf("%d were pushed: %v", i.Ready, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
