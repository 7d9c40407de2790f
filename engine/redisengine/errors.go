package redisengine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
)

// isNoScript says that a node does not know a script by its hash yet.
func isNoScript(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && e.IsNoScript()
}

// isAstray says that a node's clock is not what it was told, so that it did nothing.
func isAstray(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(e.Error(), "CLOCK ")
}

// turnedAway are the beginnings of errors with which Redis answers instead of running
// a command, and which pass by themselves.
var turnedAway = []string{"LOADING", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "BUSY ", "MOVED", "ASK"}

// notRun says that a command was certainly not run, and may be tried again.
func notRun(err error) bool {
	if errors.Is(err, errNotAsked) {
		return true
	}
	if e, ok := rueidis.IsRedisErr(err); ok {
		for _, prefix := range turnedAway {
			if strings.HasPrefix(e.Error(), prefix) {
				return true
			}
		}
		return false
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// refusesWrites says that a server takes no writes at present, but may be looked at.
func refusesWrites(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && (strings.HasPrefix(e.Error(), "NOREPLICAS") || strings.HasPrefix(e.Error(), "MISCONF"))
}

// answered says that Redis has answered for good, if only with an error.
func answered(err error) bool {
	_, ok := rueidis.IsRedisErr(err)
	return ok && !notRun(err)
}

// mayHaveRun says that nobody knows whether a command was run.
func mayHaveRun(err error) bool {
	_, answered := rueidis.IsRedisErr(err)
	return !answered && !notRun(err)
}

// The hints of errors that a call may end with.
const (
	hintUnknown = "the answer was lost, so the outcome is unknown; repeating with the same key is safe"
	hintReach   = "check that Redis runs and that the address is right"
	hintRights  = "the Redis user needs ~prefix* keys, &prefix* channels and the commands of docs/engines/redis.md"
	hintFull    = "Redis has used up its maxmemory; raise it, or wait until messages have been handled"
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
	switch {
	case errors.Is(err, errNotAsked):
		out.Err, out.Hint = fmt.Errorf("%w: %w", engine.ErrUnavailable, err), hintReach
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		out.Err, out.Hint = fmt.Errorf("%w: %w", engine.ErrUnavailable, err), hintUnknown
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
	case has("CLOCK"):
		out.Hint = "the clocks of the cluster's nodes disagree, and it is not clear which is right; run NTP on all of them"
	case answered:
		out.Err = err // a fault of ours, or of a server that is none of Redis
	case notRun(err):
		out.Hint = hintReach
	default:
		out.Hint = hintUnknown
	}
	return out
}
