package ui

import (
	"strings"
	"time"
)

// Config sets up a Handler. The zero value, and a nil Config, work.
type Config struct {
	// Path is below which the Handler is mounted without http.StripPrefix, such as
	// "/tarry". Default: none, as at the root and behind http.StripPrefix.
	Path string

	// ReadOnly hands on only what reads, by whomever it is asked, and has the pages
	// offer nothing else. Default: what viewers may do is for the API alone to say.
	ReadOnly bool

	// Secure says that browsers reach the Handler over TLS, though it ends before it, as
	// at a proxy: cookies are then for TLS alone. They are anyway for requests that come
	// in over TLS.
	Secure bool

	// SessionIdle is after how long without a request a session ends; a page that shows
	// what happens live counts as requests. Default 1 h.
	SessionIdle time.Duration

	// SessionMax is after how long a session ends in any case. Default 12 h.
	SessionMax time.Duration

	// MaxSessions bounds the sessions that are kept; one more ends, of those for the token
	// that has most, that which was not used for longest. Default 1000.
	MaxSessions int
}

// withDefaults returns a copy with every field set.
func (cfg *Config) withDefaults() Config {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.Path = strings.TrimRight(c.Path, "/"); c.Path != "" && c.Path[0] != '/' {
		c.Path = "/" + c.Path
	}
	if c.SessionIdle <= 0 {
		c.SessionIdle = time.Hour
	}
	if c.SessionMax <= 0 {
		c.SessionMax = 12 * time.Hour
	}
	if c.MaxSessions <= 0 {
		c.MaxSessions = 1000
	}
	return c
}
