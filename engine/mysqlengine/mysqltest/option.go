package mysqltest

import "github.com/tarryhq/tarry/engine/internal/servertest"

// Option is a choice made on starting servers.
type Option func(*choice)

type choice struct {
	settings []string
	grow     *func(bytes int)
	bytes    int
	command  servertest.Command
}

// Settings adds settings as my.cnf has them, such as "max_connections=10". Of a setting
// given twice the last one holds. The log has to stay on the standard error, where the
// server says that it is ready.
//
// Without any, nothing waits for the disk, as no test takes the machine's power away,
// the redo log is small, and the rest is as MariaDB has it. What measures says
// "innodb_flush_method=O_DIRECT", "innodb_log_file_size=96M".
func Settings(settings ...string) Option {
	return func(c *choice) { c.settings = append(c.settings, settings...) }
}

// SmallDisk keeps the server's data on a disk with so many bytes more than the server itself
// needs, to be filled; grow is set to what makes them more. Where that is not permitted the test
// is skipped.
func SmallDisk(bytes int, grow *func(bytes int)) Option {
	return func(c *choice) { c.bytes, c.grow = bytes, grow }
}

// Clock sets the server's wall clock off by so much, as libfaketime understands it:
// "+1h", "-90s".
func Clock(spec string) Option {
	return func(c *choice) { c.command.Clock = spec }
}
