package redisengine

import (
	"context"
	"crypto/sha1" // what EVALSHA names scripts by
	"embed"
	"encoding/hex"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

//go:embed lua
var sources embed.FS

// script is a Lua script as Redis knows it.
type script struct {
	text string
	sha  string
}

// newScript puts the named files together. Only a script that makes the store grow
// much is refused by a full server: whoever leases, settles or cancels needs a little
// memory to free more.
func newScript(grows bool, files ...string) *script {
	var b strings.Builder
	b.WriteString("#!lua")
	if !grows {
		b.WriteString(" flags=allow-oom")
	}
	b.WriteString("\n")
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
	pushScript       = newScript(true, "shard", "message", "push")
	leaseScript      = newScript(false, "shard", "message", "sweep", "take", "lease")
	claimScript      = newScript(false, "shard", "message", "sweep", "take", "claim")
	settleScript     = newScript(false, "shard", "message", "settle")
	cancelScript     = newScript(false, "shard", "message", "cancel")
	rescheduleScript = newScript(false, "shard", "message", "reschedule")
	getScript        = newScript(false, "shard", "message", "get")
	listScript       = newScript(false, "shard", "message", "sweep", "place", "list")
	fetchScript      = newScript(false, "shard", "message", "fetch")
	countScript      = newScript(false, "shard", "message", "sweep", "count")
	forecastScript   = newScript(false, "shard", "message", "sweep", "forecast")
	purgeScript      = newScript(false, "shard", "message", "sweep", "place", "purge")
	redriveScript    = newScript(false, "shard", "message", "redrive")
	pauseScript      = newScript(false, "shard", "pause")
	reclaimScript    = newScript(false, "shard", "message", "take", "reclaim")
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
	insist bool   // on what the nodes agree on, after one has objected
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

// bound is how long a call may take, however many round trips that is.
type bound struct {
	tries  time.Time // what was certainly not run is tried again until then; zero: never
	answer time.Time // answers are waited for until then
}

func patient() bound {
	now := time.Now()
	return bound{now.Add(patience), now.Add(answerPatience)}
}

// once is a bound for one try.
func once(wait time.Duration) bound { return bound{answer: time.Now().Add(wait)} }

// over says that nothing is tried again.
func (b bound) over() bool { return !time.Now().Before(b.tries) }

// eval runs scripts, all in one round trip to each node concerned. A script that a
// node does not know is sent whole. One that was certainly not run is tried again
// within the bound; one whose answer was lost is not, since it may have been run.
func (e *Engine) eval(ctx context.Context, reqs []request, until bound) []reply {
	ctx, cancel := context.WithDeadline(ctx, until.answer)
	defer cancel()
	replies := make([]reply, len(reqs))
	left := make([]int, len(reqs)) // which are still to be run
	for i := range left {
		left[i] = i
	}
	whole := make([]bool, len(reqs))
	tries := 0
	for pause := retryPauseMin; ; pause = min(2*pause, retryPauseMax) {
		cmds := make([]rueidis.Completed, len(left))
		for n, i := range left {
			cmds[n] = e.command(&reqs[i], whole[i])
		}
		again, unknown, objected := left[:0], false, false
		for n, r := range e.send(ctx, cmds) {
			i := left[n]
			replies[i] = reply{err: r.err}
			if r.err == nil {
				replies[i].values, replies[i].err = r.message.ToArray()
			}
			switch err := replies[i].err; {
			case err == nil:
			case isNoScript(err):
				whole[i], unknown = true, true
				again = append(again, i)
			case isAstray(err) && tries < objections && reqs[i].shard != nil:
				reqs[i].insist, objected = true, true
				again = append(again, i)
			case notRun(err):
				again = append(again, i)
			}
		}
		left = again
		if objected {
			tries++
			e.agreeAnew(ctx)
		}
		switch {
		case len(left) == 0:
			return replies
		case unknown, objected:
			continue
		case until.over():
			return replies
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return replies
		case <-timer.C:
		}
	}
}

func (e *Engine) command(r *request, whole bool) rueidis.Completed {
	if r.shard != nil {
		r.args[0] = e.clockArg(r.insist) // anew for each try
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
