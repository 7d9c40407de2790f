package diskengine

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() {
	engine.Register("disk", func(_ context.Context, u *url.URL) (engine.Engine, error) {
		dir, cfg, err := ParseURL(u)
		if err != nil {
			return nil, err
		}
		e, err := Open(dir, cfg)
		if err != nil {
			return nil, err
		}
		return e, nil
	})
}

// Option is an option of a disk: URL, which sets a field of Config. An option that is left out
// means the default. So where 0 means the default in Config, in a URL it means none.
type Option struct {
	Name    string
	What    string // what it sets, and its bounds
	Default string
	read    func(r *storeurl.Reader, name string, c *Config)
}

var options = []Option{
	{"memory", "about how much memory is used, over all queues, for messages that are in no file yet and, a quarter of it, for what is about to be leased; beside it each message takes about 2.7 bytes; at least 8MiB", "256MiB", func(r *storeurl.Reader, name string, c *Config) {
		if r.Bytes(name, &c.MemoryBytes) && c.MemoryBytes < LeastMemory {
			r.Fail("%s is at least 8MiB", name)
		}
	}},
	{"max_leases", "messages leased at most, over all queues, with those whose lease has lapsed and whose worker might still settle; each takes about 200 bytes beside memory; at least 1", "memory/256", func(r *storeurl.Reader, name string, c *Config) {
		if r.Int(name, &c.MaxLeases) && c.MaxLeases < 1 {
			r.Fail("%s is at least 1", name)
		}
	}},
	{"max_pending", "live messages kept at most; a push beyond fails with limit; 0: no limit", "0", func(r *storeurl.Reader, name string, c *Config) {
		r.Int(name, &c.MaxPending)
	}},
	{"min_free", "free space of the disk below which pushes fail with limit, while leasing, settling and cancelling go on; 0: until the disk is full", "256MiB", func(r *storeurl.Reader, name string, c *Config) {
		none(r.Bytes(name, &c.MinFreeBytes), &c.MinFreeBytes)
	}},
	{"ballast", "a file that is removed when the disk is full, so that leases, settlements, cancels and purges have that much space; 0: none", "64MiB", func(r *storeurl.Reader, name string, c *Config) {
		none(r.Bytes(name, &c.BallastBytes), &c.BallastBytes)
	}},
	{"retry_for", "how long a write that fails for want of space or file descriptors is tried again before the engine stops; 0s: not at all", "1m", func(r *storeurl.Reader, name string, c *Config) {
		none(r.Duration(name, &c.RetryFor), &c.RetryFor)
	}},
	{"close_timeout", "how long closing waits for a disk that does not answer; at least 1ms", "20s", func(r *storeurl.Reader, name string, c *Config) {
		if r.Duration(name, &c.CloseTimeout) && c.CloseTimeout < time.Millisecond {
			r.Fail("%s is at least 1ms", name)
		}
	}},
}

// none turns a 0 that was given into the -1 that means none in a Config.
func none[T int64 | time.Duration](given bool, n *T) {
	if given && *n == 0 {
		*n = -1
	}
}

// Options returns the options of a disk: URL without history and history_max, which stores of
// other kinds have too.
func Options() []Option { return slices.Clone(options) }

// ParseURL reads a URL with Options: disk:DIR, or disk:///DIR for a directory from the root.
func ParseURL(u *url.URL) (dir string, cfg *Config, err error) {
	r := storeurl.New(u)
	cfg = new(Config)
	dir = r.Path()
	for _, o := range options {
		o.read(r, o.Name, cfg)
	}
	r.History(&cfg.History)
	return dir, cfg, r.Done()
}
