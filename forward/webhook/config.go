package webhook

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
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
		return nil, link.Invalid("the target is not a URL; an example is https://shop.example/paid")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, link.Invalid("a webhook's URL begins with https:// or http://, not %q", u.Scheme)
	case u.Hostname() == "":
		return nil, link.Invalid("the URL names no host; an example is https://shop.example/paid")
	case u.Fragment != "":
		return nil, link.Invalid("the URL has a fragment, which is never sent; leave out the # and what follows")
	case cfg.MaxRetryAfter < 0:
		return nil, link.Invalid("the longest retry after %s is negative", cfg.MaxRetryAfter)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, link.Invalid("the URL's port is not one of 1 to 65535")
		}
	}
	return u, checkHost(u.Hostname(), cfg.Options.AllowPrivate)
}

// checkHost checks a host without resolving it.
func checkHost(host string, allowPrivate bool) error {
	if a, err := netip.ParseAddr(host); err == nil {
		if what := notPublic(a); what != "" && !allowPrivate {
			return link.Invalid("%s", refusal(a, what))
		}
		return nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch _, err := strconv.ParseUint(strings.TrimPrefix(last, "0x"), 16, 64); {
	case strings.HasPrefix(last, "0x") && (err == nil || last == "0x"), last != "" && strings.Trim(last, "0123456789") == "":
		// Some resolvers read these as IPv4 in octal, hexadecimal, or a single number.
		return link.Invalid("the host ends in a number but is not an address; write addresses as 192.0.2.1 or [2001:db8::1]")
	case last == "localhost" && !allowPrivate:
		return link.Invalid("localhost is a loopback address; private addresses are called only if that is allowed")
	}
	return nil
}

// nonPublic are the ranges that IANA's registries of special-purpose addresses call not
// globally reachable, tunnels to arbitrary IPv4 addresses, and other ranges without web
// servers. The ranges of "a protocol's" hold some of others, so they are last.
var nonPublic = []struct{ what, ranges string }{
	{"an unspecified", "0.0.0.0/8 ::/128"},
	{"a private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10"},
	{"a shared (CGNAT)", "100.64.0.0/10"},
	{"a loopback", "127.0.0.0/8 ::1/128"},
	{"a cloud's internal", "168.63.129.16/32"}, // Azure's host, seen from its machines
	{"a link-local", "169.254.0.0/16 fe80::/10"},
	{"a documentation", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"},
	{"a 6to4", "192.88.99.0/24 2002::/16"},
	{"a benchmark", "198.18.0.0/15 2001:2::/48"},
	{"a multicast", "224.0.0.0/4 ff00::/8"},
	{"a reserved", "240.0.0.0/4"},
	{"a Teredo", "2001::/32"},
	{"a protocol's", "192.0.0.0/24 2001::/23"},
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

// notPublic describes a non-public address, such as "a private"; it returns "" for a public
// one.
func notPublic(a netip.Addr) string {
	if a.Zone() != "" {
		return "a link's"
	}
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		return notPublic(netip.AddrFrom4([4]byte(b[12:])))
	}
	for _, kind := range nonPublic {
		for _, prefix := range strings.Fields(kind.ranges) {
			if netip.MustParsePrefix(prefix).Contains(a) {
				return kind.what
			}
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return "a reserved"
	}
	return ""
}

func refusal(a netip.Addr, what string) string {
	return fmt.Sprintf("%s is %s address; addresses that are not public are called only if private ones are allowed", a, what)
}

// publicOnly refuses connections to non-public addresses. It is called with the resolved
// address just before the connection, so no DNS change can come in between.
func publicOnly(_ context.Context, network, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s %s is not an internet address", network, address)
	}
	if what := notPublic(a.Addr()); what != "" {
		return fmt.Errorf("refused: %s", refusal(a.Addr(), what))
	}
	return nil
}
