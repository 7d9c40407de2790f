package diskengine

import (
	"context"
	"net/url"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/storeurl"
)

func init() {
	engine.Register("disk", func(_ context.Context, u *url.URL) (engine.Engine, error) {
		dir, cfg, err := parse(u)
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

// The bounds of what a URL may ask for in memory.
const (
	minCache    = 1 << 20
	minMemTable = 1 << 20
	maxMemTable = 1 << 30
)

// parse reads a URL: disk:DIR, or disk:///DIR for one from the root. Its options are
// named after the fields of Config: cache, mem_table, max_pending, min_free, ballast,
// retry_for and close_timeout. Where 0 means the default in a Config, in a URL it means
// none: an option that is left out is the default.
func parse(u *url.URL) (dir string, cfg *Config, err error) {
	r := storeurl.New(u)
	cfg = new(Config)
	dir = r.Path()
	if r.Bytes("cache", &cfg.CacheBytes) && cfg.CacheBytes < minCache {
		r.Fail("cache is at least 1MiB")
	}
	var n int64
	if r.Bytes("mem_table", &n) && (n < minMemTable || n > maxMemTable) {
		r.Fail("mem_table is 1MiB to 1GiB")
	}
	cfg.MemTableBytes = uint64(n)
	r.Int("max_pending", &cfg.MaxPending)
	if r.Bytes("min_free", &cfg.MinFreeBytes) && cfg.MinFreeBytes == 0 {
		cfg.MinFreeBytes = -1
	}
	if r.Bytes("ballast", &cfg.BallastBytes) && cfg.BallastBytes == 0 {
		cfg.BallastBytes = -1
	}
	if r.Duration("retry_for", &cfg.RetryFor) && cfg.RetryFor == 0 {
		cfg.RetryFor = -1
	}
	if r.Duration("close_timeout", &cfg.CloseTimeout) && cfg.CloseTimeout < time.Millisecond {
		r.Fail("close_timeout is at least 1ms")
	}
	return dir, cfg, r.Done()
}
