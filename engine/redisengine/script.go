package redisengine

import (
	"context"
	"crypto/sha1" // what EVALSHA names scripts by
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine/internal/attempt"
)

//go:embed lua
var sources embed.FS

// script is a Lua script as Redis knows it.
type script struct {
	text string
	sha  string

	// still does the same without a write, if less exactly, on a server that takes
	// none; nil: nothing does.
	still *script
	// again is to be run where the script may have been run already for the same call;
	// nil: that would act twice.
	again *script
}

// instead returns what to run after a script ended so; nil: nothing.
func (s *script) instead(err error) *script {
	switch {
	case refusesWrites(err):
		return s.still
	case fateOf(err) == attempt.Unknown:
		return s.again
	}
	return nil
}

// newScript puts the named files together. Only a script that makes the store grow
// much is refused by a full server: whoever leases, settles or cancels needs a little
// memory to free more.
func newScript(grows bool, files ...string) *script {
	if grows {
		return compose("#!lua\nlocal still = false\n", files)
	}
	return compose("#!lua flags=allow-oom\nlocal still = false\n", files)
}

// looking makes a script that writes nothing.
func looking(files ...string) *script {
	return compose("#!lua flags=no-writes\nlocal still = true\n", files)
}

// sweeping makes a script that looks at a shard and sweeps it first if it can.
func sweeping(files ...string) *script {
	s := newScript(false, files...)
	s.still = looking(files...)
	return s
}

// telling makes a script that keeps its answer for a while, as lua/tell.lua says.
func telling(grows bool, files ...string) *script {
	s := newScript(grows, append([]string{"shard", "tell"}, files...)...)
	s.again = newScript(grows, append([]string{"shard", "tell", "again"}, files...)...)
	s.again.again = s.again
	return s
}

// repeatable is a script that may run again where its answer was lost.
func repeatable(s *script) *script {
	s.again = s
	return s
}

func compose(head string, files []string) *script {
	var b strings.Builder
	b.WriteString(head)
	for _, name := range files {
		text, err := sources.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // the file is part of the program
		}
		b.Write(text)
	}
	sum := sha1.Sum([]byte(b.String()))
	return &script{text: b.String(), sha: hex.EncodeToString(sum[:])}
}

var (
	pushScript       = telling(true, "message", "push")
	leaseScript      = newScript(false, "shard", "message", "sweep", "order", "limit", "take", "lease")
	claimScript      = newScript(false, "shard", "message", "sweep", "limit", "take", "claim")
	settleScript     = telling(false, "message", "limit", "settle")
	cancelScript     = telling(false, "message", "cancel")
	rescheduleScript = telling(false, "message", "reschedule")
	getScript        = looking("shard", "message", "order", "get")
	listScript       = sweeping("shard", "message", "sweep", "order", "place", "list")
	fetchScript      = sweeping("shard", "message", "fetch")
	countScript      = sweeping("shard", "message", "sweep", "count")
	forecastScript   = sweeping("shard", "message", "sweep", "forecast")
	purgeScript      = newScript(false, "shard", "message", "sweep", "order", "place", "purge")
	redriveScript    = telling(false, "message", "redrive")
	pauseScript      = newScript(false, "shard", "pause")
	clearScript      = newScript(false, "shard", "sweep", "clear")
	reclaimScript    = newScript(false, "shard", "message", "limit", "take", "reclaim")
	configureScript  = telling(false, "message", "sweep", "configure")
	spreadScript     = repeatable(newScript(false, "shard", "message", "sweep", "spread"))
	settingsScript   = looking("shard", "settings")
	openScript       = newScript(false, "open")
	idsScript        = newScript(true, "ids")
	registerScript   = newScript(false, "register")
	forgetScript     = newScript(false, "forget")
)

// request is one call of a script. One on a shard has room ahead in its arguments for
// what every script is told: see put.
type request struct {
	script *script
	keys   []string
	args   []string
	shard  *shard // nil: none
}

// reply is what came of it.
type reply struct {
	values []rueidis.RedisMessage
	err    error
}

// How long a call that the servers turn away at the door, because they are loading,
// failing over or moving slots, is tried again before it fails.
const (
	patience      = 3 * time.Second
	retryPauseMin = 5 * time.Millisecond
	retryPauseMax = 200 * time.Millisecond
	// answerPatience is how long an answer may take: a connection on which nothing comes
	// may not be known to be dead for some time.
	answerPatience = 5 * time.Second
)

func patient() attempt.Bound { return attempt.Within(patience, answerPatience) }

// pauses are those between the attempts of a call.
func pauses() attempt.Pause { return attempt.Pause{Least: retryPauseMin, Most: retryPauseMax} }

// eval runs scripts, all in one round trip to each node concerned. A script that a
// node does not know is sent whole. One that was certainly not run is tried again
// within the bound; one whose answer was lost is too if that cannot make it act twice,
// since it may have been run.
func (e *Engine) eval(ctx context.Context, reqs []request, until attempt.Bound) []reply {
	defer e.measured.scripts.Since(time.Now())
	ctx, cancel := context.WithDeadline(ctx, until.Answer)
	defer cancel()
	replies := make([]reply, len(reqs))
	left := make([]int, len(reqs)) // which are still to be run
	for i := range left {
		left[i] = i
	}
	whole, doubted := make([]bool, len(reqs)), make([]bool, len(reqs))
	pause := pauses()
	for {
		cmds := make([]rueidis.Completed, len(left))
		for n, i := range left {
			cmds[n] = e.command(&reqs[i], whole[i])
		}
		again, unknown := left[:0], false
		var why retries
		send := e.send
		if e.replicas > 0 && len(left) > 0 && reqs[left[0]].script.again != nil {
			send = e.sendReplicated
		}
		for n, r := range send(ctx, cmds) {
			i := left[n]
			replies[i] = reply{err: r.err}
			if r.err == nil {
				replies[i].values, replies[i].err = r.message.ToArray()
			}
			switch err := replies[i].err; {
			case err == nil:
			case isNoScript(err):
				whole[i], unknown = true, true
				why[retryUnknown]++
				again = append(again, i)
			case fateOf(err) == attempt.NotRun:
				why[retryRefused]++
				again = append(again, i)
			case reqs[i].script.instead(err) != nil && ctx.Err() == nil:
				if fateOf(err) == attempt.Unknown {
					doubted[i] = true
					why[retryLost]++
				} else {
					why[retryRefused]++
				}
				reqs[i].script, whole[i] = reqs[i].script.instead(err), false
				again = append(again, i)
			}
			if err := replies[i].err; doubted[i] && err != nil && fateOf(err) != attempt.Unknown {
				replies[i].err = fmt.Errorf("an answer was lost, and then: %v", err)
			}
		}
		left = again
		switch {
		case len(left) == 0:
			return replies
		case unknown:
			e.measured.repeated(why)
			continue
		case until.Over():
			return replies
		}
		if !pause.Wait(ctx) {
			return replies
		}
		e.measured.repeated(why)
	}
}

func (e *Engine) command(r *request, whole bool) rueidis.Completed {
	if r.shard != nil {
		r.args[0] = e.clockArg() // anew for each try
	}
	if whole {
		return e.client.B().Eval().Script(r.script.text).Numkeys(int64(len(r.keys))).Key(r.keys...).Arg(r.args...).Build()
	}
	return e.client.B().Evalsha().Sha1(r.script.sha).Numkeys(int64(len(r.keys))).Key(r.keys...).Arg(r.args...).Build()
}

// eval1 runs one script.
func (e *Engine) eval1(ctx context.Context, r request) ([]rueidis.RedisMessage, error) {
	reply := e.eval(ctx, []request{r}, patient())[0]
	return reply.values, reply.err
}
