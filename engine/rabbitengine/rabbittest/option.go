package rabbittest

// Option configures a broker at its start.
type Option func(*choice)

type choice struct {
	settings  []string
	plugins   []string
	arguments []string
}

// Settings adds lines of rabbitmq.conf, such as "channel_max = 10". The last of repeated
// settings wins. Keep the log at level info on the console: the ready line is read there.
func Settings(lines ...string) Option {
	return func(c *choice) { c.settings = append(c.settings, lines...) }
}

// Plugins enables plugins, such as "rabbitmq_management". Name the plugins that they need,
// too.
func Plugins(names ...string) Option {
	return func(c *choice) { c.plugins = append(c.plugins, names...) }
}

// Arguments adds arguments of the Erlang runtime, for options that rabbitmq.conf lacks:
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
