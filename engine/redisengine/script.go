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
	reclaimScript    = newScript(false, "shard", "message", "take", "place", "reclaim")
	openScript       = newScript(false, "open")
	idsScript        = newScript(true, "ids")
	registerScript   = newScript(false, "register")
	forgetScript     = newScript(false, "forget")
)

// request is one call of a script.
type request struct {
	script *script
	keys   []string
	args   []string
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

// eval runs scripts, all in one round trip to each node concerned. A script that a
// node does not know is sent whole. One that was certainly not run is tried again as
// long as patience lasts; one whose answer was lost is not, since it may have been run.
func (e *Engine) eval(ctx context.Context, reqs []request, patience time.Duration) []reply {
	replies := make([]reply, len(reqs))
	left := make([]int, len(reqs)) // which are still to be run
	for i := range left {
		left[i] = i
	}
	whole := make([]bool, len(reqs))
	var giveUp time.Time
	for pause := retryPauseMin; ; pause = min(2*pause, retryPauseMax) {
		cmds := make([]rueidis.Completed, len(left))
		for n, i := range left {
			cmds[n] = e.command(&reqs[i], whole[i])
		}
		sent := time.Now()
		again, unknown := left[:0], false
		for n, res := range e.send(ctx, cmds) {
			i := left[n]
			values, err := res.ToArray()
			replies[i] = reply{values, err}
			switch {
			case err == nil:
			case isNoScript(err):
				whole[i], unknown = true, true
				again = append(again, i)
			case notRun(err):
				again = append(again, i)
			}
		}
		left = again
		switch {
		case len(left) == 0:
			return replies
		case unknown:
			continue
		case giveUp.IsZero():
			giveUp = sent.Add(patience)
		case time.Now().After(giveUp):
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

func (e *Engine) send(ctx context.Context, cmds []rueidis.Completed) []rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	return e.client.DoMulti(ctx, cmds...)
}

func (e *Engine) command(r *request, whole bool) rueidis.Completed {
	if whole {
		return e.client.B().Eval().Script(r.script.text).Numkeys(int64(len(r.keys))).Key(r.keys...).Arg(r.args...).Build()
	}
	return e.client.B().Evalsha().Sha1(r.script.sha).Numkeys(int64(len(r.keys))).Key(r.keys...).Arg(r.args...).Build()
}

// eval1 runs one script.
func (e *Engine) eval1(ctx context.Context, r request) ([]rueidis.RedisMessage, error) {
	reply := e.eval(ctx, []request{r}, patience)[0]
	return reply.values, reply.err
}
