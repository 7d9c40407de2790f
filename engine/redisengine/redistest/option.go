package redistest

import "slices"

// Option is a choice made on starting servers.
type Option func(*config)

type config struct {
	args  []string
	env   []string
	clock string
	nodes map[int][]Option
}

// Args adds arguments of redis-server, such as "--appendonly", "yes". Of an
// argument given twice the last one holds. The log has to stay at level notice
// and on the standard output, where the server says that it is ready.
func Args(args ...string) Option {
	return func(c *config) { c.args = append(c.args, args...) }
}

// Env adds to the environment of servers, such as "LC_ALL=en_US".
func Env(vars ...string) Option {
	return func(c *config) { c.env = append(c.env, vars...) }
}

// Clock sets the server's wall clock off by so much, as libfaketime understands
// it: "+1h", "-90s". The server's monotonic clock stays as it is.
func Clock(spec string) Option {
	return func(c *config) { c.clock = spec }
}

// NodeOption gives options to one of the Nodes of a cluster, or of what sentinels
// watch, after those for all of them.
func NodeOption(i int, opts ...Option) Option {
	return func(c *config) {
		if c.nodes == nil {
			c.nodes = make(map[int][]Option)
		}
		c.nodes[i] = append(c.nodes[i], opts...)
	}
}

func newConfig(opts []Option) *config {
	c := &config{}
	for _, o := range opts {
		o(c)
	}
	return c
}

// forNode is what holds for one node, with further arguments before its own.
func (c *config) forNode(i int, args ...string) *config {
	n := &config{args: slices.Concat(args, c.args), env: slices.Clone(c.env), clock: c.clock}
	for _, o := range c.nodes[i] {
		o(n)
	}
	return n
}
