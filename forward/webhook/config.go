package webhook

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
)

// DefaultMaxRetryAfter is the default of Config.MaxRetryAfter.
const DefaultMaxRetryAfter = time.Hour

// Config configures a Target.
type Config struct {
	// URL is called over http or https. Its user and password are sent as basic
	// authentication and never appear in errors.
	URL string

	// Options are those of all targets. A header Content-Type replaces the messages' own.
	Options forward.Options

	// MaxRetryAfter bounds the delay by an answer's Retry-After. Default
	// DefaultMaxRetryAfter.
	MaxRetryAfter time.Duration

	// Proxy is called instead of the target and resolves its name. The proxy must then
	// refuse private addresses itself. Default: none, whatever the environment says.
	Proxy *url.URL

	// Dial makes the connections, to addresses such as "shop.example:443". It must then
	// refuse private addresses itself. Default: the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func init() {
	open := func(u *url.URL, o *forward.Options) (forward.Target, error) {
		return New(&Config{URL: u.String(), Options: *o})
	}
	forward.Register("http", open)
	forward.Register("https", open)
}

// parse returns the checked URL; names are checked when they are resolved.
func (cfg *Config) parse() (*url.URL, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		// The parse error repeats the URL, which may contain a password.
		return nil, invalid("the target is not a URL; an example is https://shop.example/paid")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, invalid("a webhook's URL begins with https:// or http://, not %q", u.Scheme)
	case u.Hostname() == "":
		return nil, invalid("the URL names no host; an example is https://shop.example/paid")
	case u.Fragment != "":
		return nil, invalid("the URL has a fragment, which is never sent; leave out the # and what follows")
	case cfg.MaxRetryAfter < 0:
		return nil, invalid("the longest retry after %s is negative", cfg.MaxRetryAfter)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, invalid("the URL's port is not one of 1 to 65535")
		}
	}
	return u, checkHost(u.Hostname(), cfg.Options.AllowPrivate)
}

// checkHost checks a host without resolving it.
func checkHost(host string, allowPrivate bool) error {
	if a, err := netip.ParseAddr(host); err == nil {
		if what := notPublic(a); what != "" && !allowPrivate {
			return invalid("%s", refusal(a, what))
		}
		return nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch _, err := strconv.ParseUint(strings.TrimPrefix(last, "0x"), 16, 64); {
	case strings.HasPrefix(last, "0x") && (err == nil || last == "0x"), last != "" && strings.Trim(last, "0123456789") == "":
		// Some resolvers read these as IPv4 in octal, hexadecimal, or a single number.
		return invalid("the host ends in a number but is not an address; write addresses as 192.0.2.1 or [2001:db8::1]")
	case last == "localhost" && !allowPrivate:
		return invalid("localhost is a loopback address; private addresses are called only if that is allowed")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &tarry.Error{Op: "open target", Err: tarry.ErrInvalid, Hint: fmt.Sprintf(format, args...)}
}
