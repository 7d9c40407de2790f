package redisengine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// isNoScript reports that a node does not know a script's hash.
func isNoScript(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && e.IsNoScript()
}

// isReadOnly reports that a server is a replica. It may have been the master before, so its
// name must be resolved again.
func isReadOnly(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(e.Error(), "READONLY")
}

// timeOf returns the server's time, in microseconds, from a refusal that the call came too
// late; 0 if err is anything else.
func timeOf(err error) (us int64) {
	if e, ok := rueidis.IsRedisErr(err); ok {
		_, _ = fmt.Sscanf(e.Error(), "LATE %d", &us) // 0 if it does not match
	}
	return us
}

// turnedAway are the prefixes of errors that Redis returns instead of running a command, and
// that pass by themselves.
var turnedAway = []string{"LOADING", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "BUSY ", "MOVED", "ASK", "LATE "}

// fateOf returns what happened to a command.
func fateOf(err error) calls.Fate {
	if errors.Is(err, errNotAsked) {
		return calls.NotRun
	}
	e, ok := rueidis.IsRedisErr(err)
	if !ok {
		return calls.FateOf(err)
	}
	for _, prefix := range turnedAway {
		if strings.HasPrefix(e.Error(), prefix) {
			return calls.NotRun
		}
	}
	return calls.Answered
}

// refusesWrites reports that a server takes no writes at present but can be read.
func refusesWrites(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && (strings.HasPrefix(e.Error(), "NOREPLICAS") || strings.HasPrefix(e.Error(), "MISCONF"))
}

// isFull reports whether a server refused a call because it has reached maxmemory.
func isFull(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && (strings.HasPrefix(e.Error(), "OOM") || strings.Contains(e.Error(), "OOM command not allowed"))
}

// Hints of the errors of calls.
const (
	hintReach  = "check that Redis runs and that the address is right"
	hintRights = "the Redis user needs ~prefix* keys, &prefix* channels and the commands of docs/engines/redis.md"
	hintFull   = "Redis has reached maxmemory; raise it, or wait until messages have been handled"
)

// fault converts an error of Redis to an engine.Error.
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
		out.Hint = "it was carried out, but too few replicas confirmed it, so a failover may lose it; look it up, or repeat it with the same key"
	case errors.Is(err, errAnswer), errors.Is(err, errRecord), errors.Is(err, engine.ErrInvalid):
		out.Err = err
	case isFull(err):
		out.Err, out.Hint = fmt.Errorf("%w: %v", engine.ErrLimit, err), hintFull
	case has("NOAUTH"), has("WRONGPASS"), has("ERR invalid password"), has("ERR AUTH"), has("ERR Client sent AUTH"):
		out.Err, out.Hint = fmt.Errorf("%w: %v", engine.ErrUnauthorized, err), "check the user and the password of the URL"
	case has("NOPERM"), strings.Contains(message, "The user executing the script can't"), strings.Contains(message, "ACL failure in script"):
		out.Err, out.Hint = fmt.Errorf("%w: %v", engine.ErrForbidden, err), hintRights
	case has("READONLY"):
		out.Hint = "this Redis is a read-only replica; use the master's address, redis+sentinel:// or redis+cluster://"
	case has("MISCONF"):
		out.Hint = "Redis refuses writes because it cannot save to its disk; see its log"
	case has("NOREPLICAS"):
		out.Hint = "Redis refuses writes because too few replicas are in sync (min-replicas-to-write)"
	case has("CLUSTERDOWN"), has("MASTERDOWN"), has("LOADING"), has("TRYAGAIN"), has("MOVED"), has("ASK"):
		out.Hint = "Redis is starting, failing over or moving slots; try again"
	case has("LATE"):
		out.Hint = "nothing was done: the server's clock jumps, or its answers take too long"
	case answered:
		out.Err = err // a bug, or not a Redis server
	case fateOf(err) == calls.NotRun:
		out.Hint = hintReach
	default:
		out.Hint = engine.HintUnknown
	}
	return out
}
