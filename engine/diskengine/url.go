package diskengine

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() {
	engine.Register("disk", func(_ context.Context, u *url.URL) (engine.Engine, error) {
		if u.Query().Has("store") {
			return openLog(u)
		}
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

// openLog opens a store of package logengine, which is to take this one's place: disk:DIR?store=log,
// with its options memory, max_pending, max_leases, min_free, ballast, retry_for and close_timeout.
// It is experimental.
func openLog(u *url.URL) (engine.Engine, error) {
	r := storeurl.New(u)
	var cfg logengine.Config
	var store string
	dir := r.Path()
	if r.Text("store", &store) && store != "log" {
		r.Fail("store is log, or left out")
	}
	r.Int("max_pending", &cfg.MaxPending)
	if r.Int("max_leases", &cfg.MaxLeases) && cfg.MaxLeases < 1 {
		r.Fail("max_leases is at least 1")
	}
	if r.Bytes("memory", &cfg.MemoryBytes) && cfg.MemoryBytes < logengine.LeastMemory {
		r.Fail("memory is at least 8MiB")
	}
	none(r.Bytes("min_free", &cfg.MinFreeBytes), &cfg.MinFreeBytes)
	none(r.Bytes("ballast", &cfg.BallastBytes), &cfg.BallastBytes)
	none(r.Duration("retry_for", &cfg.RetryFor), &cfg.RetryFor)
	closeTimeout(r, &cfg.CloseTimeout)
	if err := r.Done(); err != nil {
		return nil, err
	}
	e, err := logengine.Open(dir, &cfg)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Option is an option of a disk: URL. Each sets a field of Config. Where 0 means the
// default there, in a URL it means none: an option that is left out is the default.
type Option struct {
	Name    string
	What    string // it sets, and its bounds
	Default string
	read    func(r *storeurl.Reader, name string, c *Config)
}

var options = []Option{
	{"cache", "memory for blocks read from disk; at least 1MiB", "64MiB", func(r *storeurl.Reader, name string, c *Config) {
		if r.Bytes(name, &c.CacheBytes) && c.CacheBytes < 1<<20 {
			r.Fail("%s is at least 1MiB", name)
		}
	}},
	{"mem_table", "one of at most four tables in memory of what was just written; 1MiB to 1GiB", "16MiB", func(r *storeurl.Reader, name string, c *Config) {
		var n int64
		if r.Bytes(name, &n) && (n < 1<<20 || n > 1<<30) {
			r.Fail("%s is 1MiB to 1GiB", name)
		}
		c.MemTableBytes = uint64(n)
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
	{"close_timeout", "how long closing waits for a disk that does not answer; at least 1ms", "20s", func(r *storeurl.Reader, _ string, c *Config) {
		closeTimeout(r, &c.CloseTimeout)
	}},
}

func closeTimeout(r *storeurl.Reader, d *time.Duration) {
	if r.Duration("close_timeout", d) && *d < time.Millisecond {
		r.Fail("close_timeout is at least 1ms")
	}
}

// none makes of a 0 that is given what stands for none in a Config.
func none[T int64 | time.Duration](given bool, n *T) {
	if given && *n == 0 {
		*n = -1
	}
}

// Options returns the options of a disk: URL.
func Options() []Option { return slices.Clone(options) }

// ParseURL reads a URL: disk:DIR, or disk:///DIR for one from the root, with Options.
func ParseURL(u *url.URL) (dir string, cfg *Config, err error) {
	r := storeurl.New(u)
	cfg = new(Config)
	dir = r.Path()
	for _, o := range options {
		o.read(r, o.Name, cfg)
	}
	return dir, cfg, r.Done()
}
