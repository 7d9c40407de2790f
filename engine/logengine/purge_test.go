package logengine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine"
)

// TestPurgedAreNotPending pushes in the midst of a purge: what that removes takes no place under
// max_pending from its beginning on, and what is leased does.
func TestPurgedAreNotPending(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		t.Run(fmt.Sprint("flushed ", flushed), func(t *testing.T) {
			h, _ := simulation()
			e := h.Open(t).(*logengine.Engine)
			defer func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}()
			const many = 600 // not removed at once
			var msgs, others []engine.Message
			for i := range many {
				msgs = append(msgs, message("q", fmt.Sprint(i), time.Hour))
				others = append(others, message("q", fmt.Sprint("other", i), time.Hour))
			}
			if _, err := e.Configure(t.Context(), "q", engine.Settings{MaxPending: many + 1}, ""); err != nil {
				t.Fatal(err)
			}
			if err := pushAll(t, e, append(msgs, message("q", "held", 0))...); err != nil {
				t.Fatal(err)
			}
			if n := len(lease(t, e, "q", 1)); n != 1 {
				t.Fatalf("leased %d", n)
			}
			if flushed {
				if err := e.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			tried := false
			err := h.Meanwhile(e, "purge", func() error {
				_, err := e.Purge(t.Context(), "q", 0)
				return err
			}, func(where string) {
				if where != "purge" || tried {
					return
				}
				tried = true
				if err := pushAll(t, e, others...); err != nil {
					t.Errorf("push in the midst of a purge: %v", err)
				}
				if err := pushAll(t, e, message("q", "beyond", time.Hour)); !errors.Is(err, engine.ErrLimit) {
					t.Errorf("push beyond max_pending: %v", err)
				}
			})
			if err != nil || !tried {
				t.Errorf("purge: %v; pushed meanwhile: %v", err, tried)
			}
			if err := e.Sound(); err != nil {
				t.Error(err)
			}
			if q, err := e.Queue(t.Context(), "q"); err != nil || q.Leased != 1 || q.Scheduled != many {
				t.Errorf("%v, %+v", err, q)
			}
		})
	}
}
