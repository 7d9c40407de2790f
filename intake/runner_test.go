package intake

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

func TestMessagesAreSettledOncePushed(t *testing.T) {
	s, at := newSpring(t, "pushed")
	p := newPlant(t, Intake{Queue: "q", Source: at})
	const n = 3000
	for i := range n {
		s.put(later(fmt.Sprint(i)))
	}
	s.awaitEmpty(t)
	q, err := p.c.Queue(t.Context(), "q")
	if err != nil {
		t.Fatal(err)
	}
	if st := p.acked(); q.Scheduled != n || st.Taken != n || st.Pushed != n {
		t.Errorf("%d are scheduled, and the status is %+v", q.Scheduled, st)
	}
}

func TestKeysAndCancelsGoInOrder(t *testing.T) {
	s, at := newSpring(t, "keys")
	p := newPlant(t, Intake{Queue: "q", Source: at})
	for i := range 500 {
		key := fmt.Sprint("order-", i)
		s.put(later("x", tarry.Key(key)), &Message{Cancel: key, SenderID: fmt.Sprint("id of ", key)})
	}
	s.put(later("first", tarry.Key("a")), later("second", tarry.Key("a")),
		&Message{Cancel: "none"}, &Message{Cancel: strings.Repeat("x", 600)})
	s.awaitEmpty(t)
	p.has("q", "first")
	if st := p.Status()[0]; st.Cancelled != 500 || st.Missed != 1 || st.Doubles != 1 || st.Refused != 1 {
		t.Errorf("the status is %+v", st)
	}
	if err := p.Set(Intakes{{Queue: "q", Source: at, OnConflict: "replace"}}); err != nil {
		t.Fatal(err)
	}
	s.put(later("third", tarry.Key("a")), &Message{Cancel: "a"}, later("fourth", tarry.Key("a")))
	s.awaitEmpty(t)
	p.has("q", "fourth")
}

// A cancel does not go before a push that the store has not taken yet, not even at the end.
func TestACancelWaitsForItsPush(t *testing.T) {
	s, at := newSpring(t, "waits")
	p := newPlant(t, Intake{Queue: "q", Source: at})
	p.eng.pushes(func(func() ([]engine.PushResult, error)) ([]engine.PushResult, error) { return nil, errDown })
	s.put(later("x", tarry.Key("k")), &Message{Cancel: "k"})
	p.says(Failing, CodeStore)
	s.broken <- errDown
	p.says(Failing, CodeFailed)
	p.eng.pushes(nil)
	s.awaitEmpty(t)
	p.has("q")
}

// A key is remembered, so that what comes again after its delivery is no second message.
func TestRepeatedMessagesArePushedOnce(t *testing.T) {
	s, at := newSpring(t, "again")
	p := newPlant(t, Intake{Queue: "q", Source: at})
	once := func() *Message { return &Message{Draft: tarry.NewDraft("", []byte("x")), SenderID: "id-1"} }
	s.put(once(), once())
	s.awaitEmpty(t)
	leased, err := p.c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 10})
	if err != nil || len(leased.Messages) != 1 || leased.Messages[0].Key != "q/id-1" {
		t.Fatalf("leased %+v, %v", leased.Messages, err)
	}
	if _, err := p.c.Settle(t.Context(), []tarry.Settlement{{Token: leased.Messages[0].Token, Do: tarry.DoAck}}); err != nil {
		t.Fatal(err)
	}
	s.put(once())
	s.awaitEmpty(t)
	if st := p.Status()[0]; st.Pushed != 1 || st.Doubles != 2 {
		t.Errorf("the status is %+v", st)
	}
	info, err := p.c.Get(t.Context(), tarry.ByKey("q/id-1").Of("q"))
	if err != nil || info.State != tarry.Finished {
		t.Errorf("it is %s, %v", info.State, err)
	}
	if err := p.Set(Intakes{{Queue: "other", Name: "q", Source: at, Remember: -1}}); err != nil {
		t.Fatal(err)
	}
	s.put(once())
	s.awaitEmpty(t)
	if info, err := p.c.Get(t.Context(), tarry.ByKey("q/id-1").Of("other")); err != nil || info.Remember > 0 {
		t.Errorf("it is remembered for %s, %v", info.Remember, err)
	}
}

func TestAMessageThatIsHopelessIsRefused(t *testing.T) {
	s, at := newSpring(t, "hopeless")
	p := newPlant(t, Intake{Queue: "q", Source: at, OnConflict: "reject"})
	s.put(later("x", tarry.Header("", "v")), later(strings.Repeat("x", tarry.DefaultMaxBody+1)), later("a", tarry.Key("k")), later("b", tarry.Key("k")))
	s.awaitEmpty(t)
	p.has("q", "a")
	st := p.Status()[0]
	if len(s.refused) != 3 || st.Refused != 3 || st.LastRefused == "" || st.State != Running {
		t.Errorf("refused %v, the status is %+v", s.refused, st)
	}
}

func TestAStoreThatFails(t *testing.T) {
	s, at := newSpring(t, "store")
	p := newPlant(t, Intake{Queue: "q", Source: at})
	down := &engine.Error{Op: "push", Err: engine.ErrUnavailable, Hint: "start it"}
	p.eng.pushes(func(func() ([]engine.PushResult, error)) ([]engine.PushResult, error) { return nil, down })
	s.put(later("1", tarry.Key("1")), later("2"))
	if st := p.says(Failing, CodeStore); st.Hint != "start it" || !strings.Contains(st.Error, "not reachable") || st.Unacked == 0 {
		t.Errorf("the status is %+v", st)
	}
	// It takes them, but its answer is lost.
	lost := make(chan bool, 1)
	p.eng.pushes(func(do func() ([]engine.PushResult, error)) ([]engine.PushResult, error) {
		_, err := do()
		select {
		case lost <- true:
		default:
		}
		return nil, errors.Join(err, down)
	})
	<-lost
	p.eng.pushes(nil)
	s.awaitEmpty(t)
	if st := p.says(Running, ""); st.Doubtful != 1 || st.Taken != 2 {
		t.Errorf("the status is %+v", st)
	}
}

// With reject, what is repeated is told from another message with its key.
func TestARepetitionIsNotRejected(t *testing.T) {
	s, at := newSpring(t, "rejects")
	p := newPlant(t, Intake{Queue: "q", Source: at, OnConflict: "reject"})
	lost := make(chan bool, 1)
	p.eng.pushes(func(do func() ([]engine.PushResult, error)) ([]engine.PushResult, error) {
		rs, err := do()
		select {
		case lost <- true:
			return nil, errDown
		default:
			return rs, err
		}
	})
	again := later("again", tarry.Key("k"))
	again.Redelivered = true
	s.put(later("x", tarry.Key("k")))
	s.awaitEmpty(t)
	s.put(again)
	s.awaitEmpty(t)
	s.put(later("other", tarry.Key("k")))
	s.awaitEmpty(t)
	p.has("q", "x")
	if st := p.Status()[0]; st.Doubles != 2 || st.Refused != 1 {
		t.Errorf("the status is %+v", st)
	}
}

func TestWhatIsBeingDeliveredIsNotReplaced(t *testing.T) {
	s, at := newSpring(t, "leased")
	p := newPlant(t, Intake{Queue: "q", Source: at, OnConflict: "replace"})
	s.put(&Message{Draft: tarry.NewDraft("", []byte("x"), tarry.Key("k"))})
	s.awaitEmpty(t)
	if leased, err := p.c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1}); err != nil || len(leased.Messages) != 1 {
		t.Fatalf("leased %+v, %v", leased.Messages, err)
	}
	s.put(later("y", tarry.Key("k")))
	s.awaitEmpty(t)
	if st := p.Status()[0]; st.Refused != 1 {
		t.Errorf("the status is %+v", st)
	}
}

func TestASourceThatBreaksIsReceivedFromAgain(t *testing.T) {
	s, at := newSpring(t, "breaks")
	p := newPlant(t, Intake{Queue: "q", Source: at})
	s.broken <- &Trouble{Code: "no_queue", Err: errDown, Hint: "make it"}
	if st := p.says(Failing, "no_queue"); st.Error != errDown.Error() || st.Hint != "make it" || st.Since.IsZero() {
		t.Errorf("the status is %+v", st)
	}
	p.says(Running, "")
	s.broken <- errDown
	p.says(Failing, CodeFailed)
	s.put(later("x"))
	s.awaitEmpty(t)
	p.has("q", "x")
}

// What is held when the source breaks comes again, and is not counted twice as unacked.
func TestASourceThatBreaksWhileTheStoreFails(t *testing.T) {
	s, at := newSpring(t, "both")
	p := newPlant(t, Intake{Queue: "q", Source: at})
	p.eng.pushes(func(func() ([]engine.PushResult, error)) ([]engine.PushResult, error) { return nil, errDown })
	s.put(later("x", tarry.Key("k")))
	for range 3 {
		p.says(Failing, CodeStore)
		s.broken <- errDown
		p.says(Failing, CodeFailed)
	}
	p.eng.pushes(nil)
	s.awaitEmpty(t)
	p.has("q", "x")
	if st := p.acked(); st.Redelivered == 0 {
		t.Errorf("the status is %+v", st)
	}
}

func TestSetChangesWhatHasChanged(t *testing.T) {
	a, atA := newSpring(t, "a")
	b, atB := newSpring(t, "b")
	p := newPlant(t, Intake{Queue: "a", Source: atA}, Intake{Queue: "b", Source: atB})
	begun := func(s *spring, n int) func() bool { return func() bool { return s.begun == n } }
	a.await(t, "a receives", begun(a, 1))
	b.await(t, "b receives", begun(b, 1))
	if err := p.Set(Intakes{{Queue: "a", Source: atA}, {Queue: "c", Name: "b", Source: atB}}); err != nil {
		t.Fatal(err)
	}
	b.await(t, "b receives again, after it was closed", func() bool { return b.begun == 2 && b.closed == 1 })
	b.put(later("x"))
	b.awaitEmpty(t)
	p.has("c", "x")
	for _, wrong := range []Intake{{Queue: "", Source: atA}, {Queue: "q"}, {Queue: "q", Source: "nowhere://x"}, {Queue: "q", Source: "%"},
		{Queue: "q", Source: atA, OnConflict: "never"}, {Queue: "a", Source: atB}, {Queue: "q", Source: "spring://dry"}} {
		if err := p.Set(Intakes{{Queue: "a", Source: atA}, wrong}); !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), "intake 2") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if err := p.Set(Intakes{{Queue: "c", Name: "b", Source: atB}}); err != nil {
		t.Fatal(err)
	}
	a.await(t, "a is closed", func() bool { return a.closed == 1 && a.begun == 1 })
	p.end()
	if err := p.Set(nil); !errors.Is(err, tarry.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if b.closed != 2 {
		t.Errorf("b was closed %d times", b.closed)
	}
}

// What is being pushed when the runner ends is settled before the source is closed.
func TestTheEndWaitsForPushes(t *testing.T) {
	s, at := newSpring(t, "end")
	p := newPlant(t, Intake{Queue: "q", Source: at})
	pushing, goOn := make(chan bool), make(chan bool)
	p.eng.pushes(func(do func() ([]engine.PushResult, error)) ([]engine.PushResult, error) {
		pushing <- true
		<-goOn
		return do()
	})
	s.put(later("x"))
	<-pushing
	ended := make(chan bool)
	go func() { p.end(); close(ended) }()
	<-p.jobs[0].life.Done()
	close(goOn)
	<-ended
	if len(s.stock) != 0 || s.closed != 1 {
		t.Errorf("%d are not settled, closed %d times", len(s.stock), s.closed)
	}
	p.has("q", "x")
}

func TestImpliedRoutes(t *testing.T) {
	is := Intakes{{Queue: "a", Target: "amqp://h/v?exchange=e"}, {Queue: "b", Target: "amqps://h?original=false"}, {Queue: "c", Target: "https://h/x"}, {Queue: "d"}}
	var got []string
	for _, r := range is.Routes() {
		got = append(got, r.Queue+" "+r.Target)
	}
	want := []string{"a amqp://h/v?exchange=e&original=true", "b amqps://h?original=false", "c https://h/x"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q", got)
	}
}

// A delay counts from when the message came, however long the store takes nothing.
func TestTheDelayCountsFromWhenItCame(t *testing.T) {
	s, at := newSpring(t, "counts")
	p := newPlant(t, Intake{Queue: "q", Source: at})
	p.eng.pushes(func(func() ([]engine.PushResult, error)) ([]engine.PushResult, error) { return nil, errDown })
	came := time.Now()
	s.put(later("x", tarry.Key("k")))
	p.says(Failing, CodeStore)
	p.eng.pushes(nil)
	s.awaitEmpty(t)
	info, err := p.c.Get(t.Context(), tarry.ByKey("k").Of("q"))
	if err != nil {
		t.Fatal(err)
	}
	if waited := info.Created.Add(time.Hour).Sub(info.Due); info.Due.Before(came.Add(time.Hour)) || waited < leastPause-time.Millisecond {
		t.Errorf("it came at %s, was pushed at %s, and is due at %s", came, info.Created, info.Due)
	}
}
