package servertest

// Option configures a server at its start.
type Option func(*Command)

// Settings adds lines to the server's configuration file, in its own syntax. The last of
// repeated settings wins. Keep the log on the console: the ready line is read there.
func Settings(lines ...string) Option {
	return func(c *Command) { c.Settings = append(c.Settings, lines...) }
}

// Arguments adds arguments of the program. Keep the log on the console.
func Arguments(args ...string) Option {
	return func(c *Command) { c.Arguments = append(c.Arguments, args...) }
}

// Env adds to the environment of the server, such as "LC_ALL=en_US".
func Env(vars ...string) Option {
	return func(c *Command) { c.Env = append(c.Env, vars...) }
}

// Clock shifts the server's wall clock: see Command.
func Clock(spec string) Option {
	return func(c *Command) { c.Clock = spec }
}

// Apply applies the options to c.
func (c *Command) Apply(opts []Option) {
	for _, o := range opts {
		o(c)
	}
}
