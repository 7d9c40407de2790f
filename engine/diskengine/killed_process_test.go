package diskengine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// killedDir names, in the environment, the directory on which this test binary works until it is
// killed.
const killedDir = "TARRY_TEST_VICTIM_DIR"

// often has flushes and merges under way all the time.
var often = diskengine.Tune{SegmentBytes: 256 << 10, SpanBytes: 64 << 10, BlockBytes: 4096, MergeTables: 3}

// killedProcess is a process that works on a store until it is killed, and writes a line before and after
// each call: what, the key and a time in Unix milliseconds. A key begins with its queue.
type killedProcess struct {
	*diskengine.Engine
	out sync.Mutex
}

// runUntilKilled returns why the process could not go on.
func runUntilKilled(dir string) error {
	e, err := diskengine.OpenOn(vfs.OS{}, dir, &diskengine.Config{Logger: quiet, MinFreeBytes: -1}, often)
	if err != nil {
		return err
	}
	v := &killedProcess{Engine: e}
	failed := make(chan error)
	for i, w := range []struct {
		queue string
		step  func(name string, i int) error
	}{
		{"q", v.come}, {"q", v.come}, {"q", v.come}, {"q", v.come}, {"q", v.handle}, {"q", v.handle},
		{"together", v.together}, {"purged", v.purge}, {"dead", v.die},
	} {
		go func() {
			for n := 0; ; n++ {
				if err := w.step(fmt.Sprintf("%s-%d-%d", w.queue, os.Getpid(), i), n); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

func (v *killedProcess) say(what, key string, at time.Time) {
	v.out.Lock()
	defer v.out.Unlock()
	fmt.Println(what, key, at.UnixMilli())
}

// around carries out a call, and says what is begun and what has been answered.
func (v *killedProcess) around(key, begun, answered string, do func() error) error {
	v.say(begun, key, time.Now())
	err := do()
	if err == nil {
		v.say(answered, key, time.Now())
	}
	return err
}

// push pushes a message, and says from when on it is due.
func (v *killedProcess) push(queue, key string, in time.Duration) error {
	v.say("pushing", key, time.Now().Add(in)) // the engine looks at its clock later
	err := v.kept(v.Push, message(queue, key, in))
	if err == nil {
		v.say("pushed", key, time.Now())
	}
	return err
}

func (v *killedProcess) kept(push func(context.Context, []engine.Message) ([]engine.PushResult, error), msgs ...engine.Message) error {
	results, err := push(context.Background(), msgs)
	for i := 0; i < len(results) && err == nil; i++ {
		err = results[i].Err
	}
	return err
}

// come pushes messages that are due soon or later, and cancels half of them.
func (v *killedProcess) come(name string, i int) error {
	key := fmt.Sprint(name, "-", i)
	in := time.Duration(i%3) * 3 * time.Millisecond
	if i%4 == 3 {
		in = time.Hour
	}
	if err := v.push("q", key, in); err != nil || i%2 == 0 {
		return err
	}
	err := v.around(key, "cancelling", "cancelled", func() error {
		errs, err := v.Cancel(context.Background(), []engine.Ref{{Queue: "q", Key: key}})
		if err == nil {
			err = errs[0]
		}
		return err
	})
	if errors.Is(err, engine.ErrLeased) || errors.Is(err, engine.ErrNotFound) { // it came too late
		err = nil
	}
	return err
}

// leased leases messages, for another process or for this one.
func (v *killedProcess) leased(queue string, remote bool) ([]engine.Lease, error) {
	g, err := v.Lease(context.Background(), []engine.Want{{Queue: queue, Max: 5, TTR: time.Hour, Remote: remote}})
	if err == nil {
		err = g.Queues[0].Err
	}
	if err != nil {
		return nil, err
	}
	for _, l := range g.Queues[0].Messages {
		what := "leased"
		if remote {
			what = "held"
		}
		v.say(what, l.Key, time.Now())
	}
	return g.Queues[0].Messages, nil
}

func (v *killedProcess) settle(l engine.Lease, do engine.Action) error {
	s, err := v.Settle(context.Background(), []engine.Settlement{{Token: l.Token, Do: do}})
	if err == nil {
		err = s[0].Err
	}
	return err
}

// handle leases what is due and acks it, but for the first of each call.
func (v *killedProcess) handle(_ string, i int) error {
	leases, err := v.leased("q", i%2 == 0)
	for j, l := range leases {
		if j > 0 && err == nil {
			err = v.around(l.Key, "acking", "acked", func() error { return v.settle(l, engine.Ack) })
		}
	}
	return err
}

// together pushes messages as one.
func (v *killedProcess) together(name string, i int) error {
	key, n := fmt.Sprint(name, "-", i), 2+i%30
	msgs := make([]engine.Message, n)
	for j := range msgs {
		msgs[j] = message("together", fmt.Sprint(key, "/", j), time.Hour)
	}
	return v.around(fmt.Sprint(key, "/", n), "pushing-all", "pushed-all", func() error { return v.kept(v.PushAtomic, msgs...) })
}

// purge pushes messages and purges their queue now and then.
func (v *killedProcess) purge(name string, i int) error {
	if err := v.push("purged", fmt.Sprint(name, "-", i), time.Hour); err != nil || i%20 != 19 {
		return err
	}
	return v.around("all", "purging", "purged", func() error {
		_, err := v.Purge(context.Background(), "purged", 0)
		return err
	})
}

// die pushes messages, buries some that are due, and brings each second of those back.
func (v *killedProcess) die(name string, i int) error {
	if err := v.push("dead", fmt.Sprint(name, "-", i), 0); err != nil {
		return err
	}
	leases, err := v.leased("dead", false)
	for j, l := range leases {
		if err == nil {
			err = v.around(l.Key, "burying", "buried", func() error { return v.settle(l, engine.Bury) })
		}
		if err == nil && j%2 == 1 {
			err = v.around(l.Key, "redriving", "redriven", func() error {
				got, err := v.Redrive(context.Background(), "dead", []engine.ID{l.ID}, 0)
				if err == nil && got.Redriven != 1 {
					err = fmt.Errorf("%s is not brought back: %+v", l.Key, got)
				}
				return err
			})
		}
	}
	return err
}
