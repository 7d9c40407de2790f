package redisstream

import (
	"strings"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/intake"
)

// troubles are the codes and hints of errors of Redis, by prefix.
var troubles = []struct{ prefix, code, hint string }{
	{"NOGROUP", "no_group", "make the stream and its group, by XGROUP CREATE STREAM GROUP 0 MKSTREAM, or let the intake with declare=true"},
	{"WRONGTYPE", "mismatch", "the key is no stream; choose another"},
	{"NOAUTH", intake.CodeCredentials, "this Redis requires a password; set one in the URL or by password_file"},
	{"WRONGPASS", intake.CodeCredentials, "check the user and the password of the source's URL"},
	{"ERR AUTH", intake.CodeCredentials, "this Redis has no password; leave it out of the URL"},
	{"NOPERM", intake.CodeForbidden, "the user needs the key of the stream, and +xreadgroup +xack +xautoclaim +xgroup +xpending +xlen +xadd +xdel"},
	{"READONLY", intake.CodeFailed, "this Redis is a read-only replica; use the master's address"},
	{"MOVED", intake.CodeFailed, "this Redis is a node of a cluster, and another node has the stream; use that node"},
}

// trouble converts an error of Redis.
func (s *source) trouble(err error) error {
	if err == nil {
		return nil
	}
	e, answered := rueidis.IsRedisErr(err)
	if !answered {
		return &intake.Trouble{Code: intake.CodeUnreachable, Err: err, Hint: "check that Redis runs at " + strings.Join(s.client.InitAddress, ", ") + "; the intake connects again by itself"}
	}
	for _, t := range troubles {
		if strings.HasPrefix(e.Error(), t.prefix) {
			return &intake.Trouble{Code: t.code, Err: err, Hint: t.hint}
		}
	}
	return &intake.Trouble{Code: intake.CodeFailed, Err: err, Hint: "Redis returned this error"}
}
