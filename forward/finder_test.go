package forward

import (
	"testing"
	"testing/synctest"
	"time"
)

// What is pushed behind a list's back, to a queue that the list then shows as empty.
func TestPushWhileAQueueLeavesIsHeard(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		f := newFinder()
		f.heed(Routes{{Queue: "q*"}})
		f.hint("q1")
		f.gather()
		empty := func() {
			l := list{began: time.Now()}
			time.Sleep(time.Second)
			f.take(l)
		}
		empty() // with the hint
		empty()
		time.Sleep(idleAfter)
		l := list{began: time.Now()}
		time.Sleep(time.Second)
		f.hint("q1")
		f.take(l)
		if f.queues["q1"] == nil {
			t.Error("it went although something was pushed")
		}
		empty()
		time.Sleep(idleAfter)
		empty()
		if f.queues["q1"] != nil {
			t.Error("it stays")
		}
		if _, known := f.known.Load("q1"); known {
			t.Error("hints of it are not heeded")
		}
	})
}

func TestHintsOfNamedQueuesAreOver(t *testing.T) {
	f := newFinder()
	f.heed(Routes{{Queue: "*"}, {Queue: "named"}})
	f.hint("named")
	if len(f.fresh) > 0 {
		t.Error("a queue that a route names was found")
	}
	f.heed(Routes{{Queue: "*"}})
	f.hint("named")
	f.hint("named")
	if len(f.fresh) != 1 {
		t.Error("a queue that no route names any more is not found")
	}
}
