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

	// MaxConnections bounds the open connections. Further ones are closed at once. Default
	// 16,384.
	MaxConnections int

	// MaxBuffered bounds the memory of the buffers of all connections, in bytes. Without room
	// a job that does not fit into 1 KiB gets OUT_OF_MEMORY. Default 256 MiB, or four times
	// MaxJob: a buffer grows by copying.
	MaxBuffered int64

	// ReadTimeout is how long a client may take to send each 64 KiB of a job of more than 1
	// KiB, and how long it may stay idle before it authenticates. Default 30 s. Else between commands,
	// and in small jobs, a client may stay idle for ever.
	ReadTimeout time.Duration

	// WriteTimeout bounds each write of up to 64 KiB of answers, from its start until the
	// kernel has taken all of it. Then the connection is cut. Default 30 s.
	WriteTimeout time.Duration

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

// The defaults of a Config.
const (
	DefaultMaxJob         = 1<<16 - 1
	DefaultMaxConnections = 16_384
	DefaultMaxBuffered    = 256 << 20
)

// withDefaults returns a copy with every field set.
func (cfg *Config) withDefaults(maxBody int) Config {
	c := *cmp.Or(cfg, new(Config))
	c.MaxJob = min(cmp.Or(max(c.MaxJob, 0), DefaultMaxJob), maxBody)
	c.MaxConnections = cmp.Or(max(c.MaxConnections, 0), DefaultMaxConnections)
	c.MaxBuffered = cmp.Or(max(c.MaxBuffered, 0), max(DefaultMaxBuffered, 4*int64(c.MaxJob)))
	c.ReadTimeout = cmp.Or(max(c.ReadTimeout, 0), 30*time.Second)
	c.WriteTimeout = cmp.Or(max(c.WriteTimeout, 0), 30*time.Second)
	c.ShutdownTimeout = cmp.Or(max(c.ShutdownTimeout, 0), 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

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
