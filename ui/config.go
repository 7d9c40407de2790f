package ui

import (
	"cmp"
	"strings"
	"time"
)

// Config sets up a Handler. The zero value, and a nil Config, work.
type Config struct {
	// Path is where the Handler is mounted if http.StripPrefix does not remove it, such as
	// "/tarry". Default: none.
	Path string

	// ReadOnly refuses every request that changes something, whatever its token allows, and
	// the pages offer no actions. Default: the API alone decides what viewers may do.
	ReadOnly bool

	// Secure says that a proxy in front of the Handler ends TLS. Cookies are then sent over
	// TLS only. Cookies of requests that arrive over TLS always are.
	Secure bool

	// SessionIdle is how long a session lasts without a request. A page that shows live
	// changes keeps its session from being idle. Default 1 h.
	SessionIdle time.Duration

	// SessionMax is how long a session lasts at most. Default 12 h.
	SessionMax time.Duration

	// MaxSessions is how many sessions are kept. Another one ends the least recently used
	// session of the token that has the most. Default 1000.
	MaxSessions int
}

// withDefaults returns a copy with every field set.
func (cfg *Config) withDefaults() Config {
	c := *cmp.Or(cfg, new(Config))
	if c.Path = strings.TrimRight(c.Path, "/"); c.Path != "" && c.Path[0] != '/' {
		c.Path = "/" + c.Path
	}
	c.SessionIdle = cmp.Or(max(c.SessionIdle, 0), time.Hour)
	c.SessionMax = cmp.Or(max(c.SessionMax, 0), 12*time.Hour)
	c.MaxSessions = cmp.Or(max(c.MaxSessions, 0), 1000)
	return c
}
