package pgtest

import "github.com/tarryhq/tarry/engine/internal/servertest"

// Option is a choice made on starting servers.
type Option func(*config)

type config struct {
	settings []string
	command  servertest.Command
}

// Settings adds lines of postgresql.conf, such as "max_connections = 10". Of a setting
// given twice the last one holds. The log has to stay where it is: there the server says
// that it is ready.
//
// Without any, fsync is off, as no test takes the machine's power away, and the rest is
// as PostgreSQL has it. What measures says "fsync = on".
func Settings(lines ...string) Option {
	return func(c *config) { c.settings = append(c.settings, lines...) }
}

// Clock sets the server's wall clock off by so much, as libfaketime understands it:
// "+1h", "-90s".
func Clock(spec string) Option {
	return func(c *config) { c.command.Clock = spec }
}

func newConfig(opts []Option) *config {
	c := &config{}
	for _, o := range opts {
		o(c)
	}
	return c
}
