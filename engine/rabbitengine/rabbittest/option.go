package rabbittest

// Option is a choice made on starting brokers.
type Option func(*choice)

type choice struct {
	settings  []string
	plugins   []string
	arguments []string
}

// Settings adds lines of rabbitmq.conf, such as "channel_max = 10". Of a setting given twice
// the last one holds. The log has to stay at level info and on the console, where the broker
// says that it is ready.
func Settings(lines ...string) Option {
	return func(c *choice) { c.settings = append(c.settings, lines...) }
}

// Plugins enables plugins, such as "rabbitmq_management"; name also those that they need.
func Plugins(names ...string) Option {
	return func(c *choice) { c.plugins = append(c.plugins, names...) }
}

// Arguments adds arguments of the Erlang runtime, for what rabbitmq.conf has no setting for:
// "-rabbit", "dead_letter_worker_publisher_confirm_timeout", "1000".
func Arguments(args ...string) Option {
	return func(c *choice) { c.arguments = append(c.arguments, args...) }
}

func newChoice(opts []Option) *choice {
	c := &choice{}
	for _, o := range opts {
		o(c)
	}
	return c
}
