package redisengine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/attempt"
)

// isNoScript says that a node does not know a script by its hash yet.
func isNoScript(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && e.IsNoScript()
}

// isReadOnly says that a server is the replica of another, which may have been the master
// before: then the name by which it was found leads elsewhere by now.
func isReadOnly(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(e.Error(), "READONLY")
}

// timeOf returns what the clock of a server showed that did nothing because by it nobody
// waited any more, in microseconds; 0: err is something else.
func timeOf(err error) (us int64) {
	if e, ok := rueidis.IsRedisErr(err); ok {
		_, _ = fmt.Sscanf(e.Error(), "LATE %d", &us) // 0 where it is not that
	}
	return us
}

// turnedAway are the beginnings of errors with which Redis answers instead of running
// a command, and which pass by themselves.
var turnedAway = []string{"LOADING", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "BUSY ", "MOVED", "ASK", "LATE "}

// fateOf tells what became of a command.
func fateOf(err error) attempt.Fate {
	if errors.Is(err, errNotAsked) {
		return attempt.NotRun
	}
	e, ok := rueidis.IsRedisErr(err)
	if !ok {
		return attempt.FateOf(err)
	}
	for _, prefix := range turnedAway {
		if strings.HasPrefix(e.Error(), prefix) {
			return attempt.NotRun
		}
	}
	return attempt.Answered
}

// refusesWrites says that a server takes no writes at present, but may be looked at.
func refusesWrites(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && (strings.HasPrefix(e.Error(), "NOREPLICAS") || strings.HasPrefix(e.Error(), "MISCONF"))
}

// The hints of errors that a call may end with.
const (
	hintReach  = "check that Redis runs and that the address is right"
	hintRights = "the Redis user needs ~prefix* keys, &prefix* channels and the commands of docs/engines/redis.md"
	hintFull   = "Redis has used up its maxmemory; raise it, or wait until messages have been handled"
)

// fault makes an engine.Error of what a call on Redis ended with.
func fault(op, queue string, err error) error {
	if err == nil {
		return nil
	}
	out := &engine.Error{Op: op, Queue: queue, Err: fmt.Errorf("%w: %v", engine.ErrUnavailable, err)}
	redisErr, answered := rueidis.IsRedisErr(err)
	var message string
	if answered {
		message = redisErr.Error()
	}
	has := func(prefix string) bool { return strings.HasPrefix(message, prefix) }
	var other *differs
	switch {
	case errors.As(err, &other):
		out.Hint = "it was not pushed; try again"
	case errors.Is(err, errNotAsked):
		out.Err, out.Hint = fmt.Errorf("%w: %w", engine.ErrUnavailable, err), hintReach
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		out.Err, out.Hint = fmt.Errorf("%w: %w", engine.ErrUnavailable, err), engine.HintUnknown
	case errors.Is(err, errReplicas):
		out.Hint = "it was carried out, but too few replicas have it: a failover may lose it; look it up, or repeat it with the same key"
	case errors.Is(err, errAnswer), errors.Is(err, errRecord), errors.Is(err, engine.ErrInvalid):
		out.Err = err
	case has("OOM"), strings.Contains(message, "OOM command not allowed"):
		out.Err, out.Hint = fmt.Errorf("%w: %v", engine.ErrLimit, err), hintFull
	case has("NOAUTH"), has("WRONGPASS"), has("ERR invalid password"), has("ERR AUTH"), has("ERR Client sent AUTH"):
		out.Err, out.Hint = fmt.Errorf("%w: %v", engine.ErrUnauthorized, err), "check the user and the password of the URL"
	case has("NOPERM"), strings.Contains(message, "The user executing the script can't"), strings.Contains(message, "ACL failure in script"):
		out.Err, out.Hint = fmt.Errorf("%w: %v", engine.ErrForbidden, err), hintRights
	case has("READONLY"):
		out.Hint = "this Redis is a read-only replica; name the master, or use redis+sentinel:// or redis+cluster://"
	case has("MISCONF"):
		out.Hint = "Redis refuses writes because it cannot save to its disk; see its log"
	case has("NOREPLICAS"):
		out.Hint = "Redis refuses writes because too few replicas are in step (min-replicas-to-write)"
	case has("CLUSTERDOWN"), has("MASTERDOWN"), has("LOADING"), has("TRYAGAIN"), has("MOVED"), has("ASK"):
		out.Hint = "Redis is starting, failing over or moving slots; try again"
	case has("LATE"):
		out.Hint = "nothing was done: the server's clock jumps, or its answers take too long"
	case answered:
		out.Err = err // a fault of ours, or of a server that is none of Redis
	case fateOf(err) == attempt.NotRun:
		out.Hint = hintReach
	default:
		out.Hint = engine.HintUnknown
	}
	return out
}
