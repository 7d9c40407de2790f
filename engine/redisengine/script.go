package redisengine

import (
	"context"
	"crypto/sha1" // EVALSHA names scripts by it
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/internal/calls"
)

//go:embed lua
var sources embed.FS

// script is a Lua script as Redis knows it.
type script struct {
	head  string
	files []string // in lua/
	made  sync.Once
	text  string
	sha   string

	// readOnly is a less exact variant without writes, for servers that refuse writes; nil if
	// there is none.
	readOnly *script
	// repeats says that the script may run twice for one call. keeps says that it stores its
	// answer for that purpose, as lua/reply.lua describes.
	repeats, keeps bool
}

// newScript joins the named files. A server without free memory refuses only scripts that
// make the store grow much. Leases, settlements and cancels need a little memory to free
// more.
func newScript(grows bool, files ...string) *script {
	if grows {
		return &script{head: "#!lua\nlocal readonly = false\n", files: files}
	}
	return &script{head: "#!lua flags=allow-oom\nlocal readonly = false\n", files: files}
}

// readScript makes a script that writes nothing.
func readScript(files ...string) *script {
	return &script{head: "#!lua flags=no-writes\nlocal readonly = true\n", files: files}
}

// sweepScript makes a script that reads a shard, and sweeps it first if writes are allowed.
func sweepScript(files ...string) *script {
	s := newScript(false, files...)
	s.readOnly = readScript(files...)
	return s
}

// replyScript makes a script that stores its answer for a while, as lua/reply.lua describes.
func replyScript(grows bool, files ...string) *script {
	s := repeatable(newScript(grows, append([]string{"shard", "reply"}, files...)...))
	s.keeps = true
	return s
}

// repeatable marks a script that may run twice.
func repeatable(s *script) *script {
	s.repeats = true
	return s
}

// source returns a script's text and hash. They are made at first use, because most programs
// use few scripts.
func (s *script) source() (text, sha string) {
	s.made.Do(func() {
		var b strings.Builder
		b.WriteString(s.head)
		for _, name := range append([]string{"clock"}, s.files...) {
			text, err := sources.ReadFile("lua/" + name + ".lua")
			if err != nil {
				panic(err) // embedded
			}
			b.Write(text)
		}
		s.text = b.String()
		sum := sha1.Sum([]byte(s.text))
		s.sha = hex.EncodeToString(sum[:])
	})
	return s.text, s.sha
}

var (
	pushScript       = replyScript(true, "message", "sealed", "push")
	leaseScript      = newScript(false, "shard", "message", "sweep", "order", "ready", "limit", "take", "lease")
	claimScript      = newScript(false, "shard", "message", "sweep", "limit", "take", "claim")
	settleScript     = replyScript(false, "message", "limit", "sealed", "settle")
	cancelScript     = replyScript(false, "message", "cancel")
	rescheduleScript = replyScript(false, "message", "reschedule")
	getScript        = readScript("shard", "message", "order", "get")
	listScript       = sweepScript("shard", "message", "sweep", "order", "place", "list")
	peekScript       = sweepScript("shard", "message", "sweep", "order", "ready", "peek")
	findScript       = readScript("shard", "message", "find")
	fetchScript      = sweepScript("shard", "message", "fetch")
	countScript      = sweepScript("shard", "message", "sweep", "count")
	forecastScript   = sweepScript("shard", "message", "sweep", "forecast")
	purgeScript      = replyScript(false, "message", "sweep", "order", "place", "purge")
	redriveScript    = replyScript(false, "message", "redrive")
	pauseScript      = replyScript(false, "pause")
	clearScript      = newScript(false, "shard", "sweep", "clear")
	shedScript       = repeatable(newScript(false, "shard", "message", "shed"))
	configureScript  = replyScript(false, "message", "sweep", "configure")
	spreadScript     = repeatable(newScript(false, "shard", "message", "sweep", "spread"))
	settingsScript   = readScript("shard", "settings")
	openScript       = newScript(false, "open")
	idsScript        = newScript(true, "ids")
	registerScript   = newScript(false, "register")
	forgetScript     = newScript(false, "forget")
)

// request is one call of a script. The first arguments are reserved: see lua/clock.lua and, for
// the script of a shard, lua/shard.lua.
type request struct {
	script *script
	shard  *shard   // nil: none
	keys   []string // of a shard: see put
	args   []string

	whole   bool   // the server does not know the script
	doubted bool   // an answer was lost
	late    int    // how often it was too late by the server's clock
	clock   *clock // the clock learned from that; nil: use the shard's
}

// Bounds of the retries of a call that servers turn away because they are loading, failing
// over or moving slots.
const (
	patience      = 3 * time.Second
	retryPauseMin = 5 * time.Millisecond
	retryPauseMax = 200 * time.Millisecond
	// answerTimeout is how long an answer may take. Finding out that a silent connection is
	// dead takes time.
	answerTimeout = 5 * time.Second
	// lates is how often a request may be too late by the server's clock before the server
	// is treated as one that turns calls away.
	lates = 3
)

func (e *Engine) patient() calls.Bound {
	return calls.Within(patience+e.slack, answerTimeout+e.slack)
}

// pauses are the pauses between the attempts of a call.
func pauses() calls.Pause { return calls.Pause{Least: retryPauseMin, Most: retryPauseMax} }

// eval runs scripts, all in one round trip to each node, and repeats those that again
// selects, within the bound.
func (e *Engine) eval(ctx context.Context, reqs []request, until calls.Bound) []answer {
	defer e.measured.scripts.Since(time.Now())
	ctx, cancel := context.WithDeadline(ctx, until.Answer)
	defer cancel()
	deadline, _ := ctx.Deadline()
	answers := make([]answer, len(reqs))
	left := make([]int, len(reqs)) // still to run
	for i := range left {
		left[i] = i
	}
	for pause := pauses(); ; {
		cmds := make([]rueidis.Completed, len(left))
		for n, i := range left {
			cmds[n] = e.command(&reqs[i], deadline)
		}
		send := e.send
		if e.replicas > 0 && len(left) > 0 && reqs[left[0]].script.repeats {
			send = e.sendReplicated
		}
		var why [retryCauses]int64
		sent, again := time.Now(), left[:0]
		for n, a := range send(ctx, cmds...) {
			i := left[n]
			if isReadOnly(a.err) {
				e.conns.hangUp()
			}
			if cause := reqs[i].again(a.err, sent); cause < retryCauses {
				why[cause]++
				again = append(again, i)
			}
			if reqs[i].doubted && a.err != nil && fateOf(a.err) != calls.Unknown {
				a.err = fmt.Errorf("an answer was lost, then: %v", a.err)
			}
			answers[i] = a
		}
		left = again
		atOnce := why[retryUnknown]+why[retryClock] > 0
		if len(left) == 0 || !atOnce && (until.Over() || !pause.Wait(ctx)) {
			return answers
		}
		for cause, n := range why {
			e.measured.again[cause].Add(n)
		}
	}
}

// again returns why a request is sent again, or retryCauses if it is not. A script that the
// server does not know is sent whole. A request that certainly did not run is repeated. If its
// answer was lost, it is repeated only if the script may run twice.
func (r *request) again(err error, sent time.Time) retryCause {
	us := timeOf(err)
	switch {
	case err == nil:
		return retryCauses
	case isNoScript(err):
		r.whole = true
		return retryUnknown
	case us > 0 && r.late < lates:
		if r.late++; r.clock == nil {
			r.clock = new(clock)
		}
		r.clock.observe(us, sent, time.Now())
		return retryClock
	case fateOf(err) == calls.NotRun:
		return retryRefused
	case refusesWrites(err) && r.script.readOnly != nil:
		r.script, r.whole = r.script.readOnly, false
		return retryRefused
	case fateOf(err) == calls.Unknown && r.script.repeats:
		r.doubted = true
		return retryLost
	}
	return retryCauses
}

func (e *Engine) command(r *request, until time.Time) rueidis.Completed {
	r.args[0] = e.timeArg(r, until)
	text, sha := r.script.source()
	if r.whole {
		return e.client.B().Eval().Script(text).Numkeys(int64(len(r.keys))).Key(r.keys...).Arg(r.args...).Build()
	}
	return e.client.B().Evalsha().Sha1(sha).Numkeys(int64(len(r.keys))).Key(r.keys...).Arg(r.args...).Build()
}

// eval1 runs one script that is of no shard.
func (e *Engine) eval1(ctx context.Context, until calls.Bound, sc *script, keys []string, args ...string) answer {
	return e.eval(ctx, []request{{script: sc, keys: keys, args: append([]string{""}, args...)}}, until)[0]
}
