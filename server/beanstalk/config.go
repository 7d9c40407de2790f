package beanstalk

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/server/access"
)

// Config sets up a Server. The zero value, and a nil Config, work.
type Config struct {
	// MaxJob bounds the body of a job that is put, in bytes. Default 65,535, as in beanstalkd;
	// at most the client's MaxBody.
	MaxJob int

	// ShutdownTimeout is how long Serve waits for commands under way after its context has
	// ended. Default 30 s.
	ShutdownTimeout time.Duration

	// Guard knows the tokens. With it a connection may do nothing before "auth SECRET".
	// Default: every connection may do everything.
	Guard *access.Guard

	// As names a token: connections that do not authenticate have its rights. Default: they
	// have none.
	As string

	// Audit gets a line for each change that an operator makes: pause-tube, kick, kick-job,
	// and delete with a token that may not push. Default: none.
	Audit *access.Audit

	// Logger gets the failures behind INTERNAL_ERROR, and what ends connections. Default: nothing is logged.
	Logger *slog.Logger
}

// DefaultMaxJob is the default of Config.MaxJob.
const DefaultMaxJob = 1<<16 - 1

// withDefaults returns a copy with every field set.
func (cfg *Config) withDefaults(maxBody int) Config {
	c := *cmp.Or(cfg, new(Config))
	c.MaxJob = min(cmp.Or(max(c.MaxJob, 0), DefaultMaxJob), maxBody)
	c.ShutdownTimeout = cmp.Or(max(c.ShutdownTimeout, 0), 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// limits bound what clients take. Tests lower them.
type limits struct {
	connections int64         // open ones; further ones are closed at once
	read        time.Duration // for each 64 KiB of a job of more than 1 KiB, and at rest without a token
	write       time.Duration // for each 64 KiB of answers, until the kernel has taken them
}

var defaultLimits = limits{connections: 16_384, read: 30 * time.Second, write: 30 * time.Second}

// maxBuffered bounds the memory of the buffers of all connections, unless MaxJob needs more: a
// buffer grows by copying. Without room, a job of more than 1 KiB gets OUT_OF_MEMORY.
const maxBuffered = 256 << 20

// able returns an error unless the engine can do all that the protocol needs.
func able(caps tarry.Capabilities) error {
	for _, need := range []struct {
		can  bool
		what string
	}{
		{caps.Cancel, "cancel"}, {caps.Get, "get"}, {caps.List && caps.Range, "lists"}, {caps.Count, "counters"},
		{caps.Extend, "extend"}, {caps.Pause, "pause"}, {caps.Redrive, "redrive"}, {caps.Reschedule, "reschedule"},
		{caps.IfState, "if_state"}, {caps.Claim && caps.ClaimIf, "claim with if_state"}, {caps.Priority, "priorities"},
		{caps.Reprioritize, "priorities of settlements"}, {caps.Peek, "peek"}, {caps.Find, "find"},
	} {
		if !need.can {
			return &tarry.Error{Op: "serve beanstalk", Err: tarry.ErrUnsupported, Hint: fmt.Sprintf(
				"the engine %s has no %s; mem, disk, redis, postgres and mysql have all that the protocol of beanstalkd needs", caps.Name, need.what)}
		}
	}
	return nil
}

var errNoGuard = errors.New("beanstalk: Config.As names a token, but there is no Guard")
