package webhook

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
)

// nonPublic are the ranges that IANA's registries of special-purpose addresses call not
// globally reachable, tunnels to arbitrary IPv4 addresses, and other ranges without web
// servers.
var nonPublic = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a shared (CGNAT)"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's internal"}, // Azure's host, seen from its machines
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a protocol's"},
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmark"},
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved"},

	{netip.MustParsePrefix("::/128"), "an unspecified"},
	{netip.MustParsePrefix("::1/128"), "a loopback"},
	{netip.MustParsePrefix("fc00::/7"), "a private"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local"},
	{netip.MustParsePrefix("fec0::/10"), "a private"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast"},
	{netip.MustParsePrefix("2001::/32"), "a Teredo"},
	{netip.MustParsePrefix("2001:2::/48"), "a benchmark"},
	{netip.MustParsePrefix("2001::/23"), "a protocol's"},
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation"},
	{netip.MustParsePrefix("2002::/16"), "a 6to4"},
	{netip.MustParsePrefix("3fff::/20"), "a documentation"},
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
	for _, s := range nonPublic {
		if s.prefix.Contains(a) {
			return s.what
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
