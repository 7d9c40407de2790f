package redistest

import "slices"

// Option configures the servers of a test.
type Option func(*config)

type config struct {
	args  []string
	env   []string
	clock string
	nodes map[int][]Option
}

// Args adds arguments of redis-server, such as "--appendonly", "yes". The last of repeated
// arguments wins. Keep the log at level notice on standard output: the ready line is read
// there.
func Args(args ...string) Option {
	return func(c *config) { c.args = append(c.args, args...) }
}

// Env adds to the environment of servers, such as "LC_ALL=en_US".
func Env(vars ...string) Option {
	return func(c *config) { c.env = append(c.env, vars...) }
}

// Clock shifts the server's wall clock, in libfaketime's notation: "+1h", "-90s". The
// monotonic clock is unchanged.
func Clock(spec string) Option {
	return func(c *config) { c.clock = spec }
}

// NodeOption applies options to one of the Nodes, after the options of all nodes.
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

// forNode is the configuration of one node; args come before its own arguments.
func (c *config) forNode(i int, args ...string) *config {
	n := &config{args: slices.Concat(args, c.args), env: slices.Clone(c.env), clock: c.clock}
	for _, o := range c.nodes[i] {
		o(n)
	}
	return n
}
