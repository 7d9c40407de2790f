// Package redisurl reads how to connect to one Redis server from the URL of a target or a
// source.
package redisurl

import (
	"crypto/tls"
	"math"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/internal/storeurl"
)

// Client reads the options of a client: host, user, database, password_file and, of rediss,
// the certificates. base configures TLS besides.
func Client(r *storeurl.Reader, u *url.URL, base *tls.Config, timeout time.Duration) rueidis.ClientOption {
	c := rueidis.ClientOption{
		ForceSingleClient: true,
		DisableCache:      true,
		AlwaysPipelining:  true, // otherwise a call heeds only the deadline, not cancellation
		ConnWriteTimeout:  timeout,
		Dialer:            net.Dialer{Timeout: timeout},
		ClientName:        "tarry",
		PipelineMultiplex: -1, // one connection carries everything
		Username:          u.User.Username(),
		InitAddress:       []string{storeurl.Address(u.Host, "6379")},
	}
	r.Password("password_file", &c.Password)
	if u.Scheme == "rediss" {
		c.TLSConfig = r.TLSOver(base)
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		var n int64
		r.Number("the database", path, &n)
		c.SelectDB = int(min(n, math.MaxInt32))
	}
	if u.Opaque != "" || u.Fragment != "" || u.Host == "" {
		r.Fail("an example is redis://127.0.0.1:6379/0?stream=orders")
	}
	return c
}
