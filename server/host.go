package server

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// hosts are the names and addresses that a server answers for.
//
// They defend against DNS rebinding. The owner of a web page can point its name to 127.0.0.1.
// The browser then takes the page and a server there for one origin, and lets the page read
// and write everything. But the browser sends the name along, so the server answers only for
// names it was told. An address cannot be pointed elsewhere, and the one that a connection
// came in on is the server's own.
type hosts struct {
	names map[string]bool // in lower case, without a dot at the end
	below []string        // ".example.com", for all names below
	addrs map[netip.Addr]bool
}

func newHosts(told []string) *hosts {
	h := &hosts{names: map[string]bool{"localhost": true}, below: []string{".localhost"}, addrs: make(map[netip.Addr]bool)}
	for _, t := range told {
		if CheckHost(t) != nil {
			continue
		}
		name := strings.ToLower(strings.TrimSuffix(t, "."))
		if addr, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
			h.addrs[addr.Unmap()] = true
		} else if after, ok := strings.CutPrefix(name, "*"); ok {
			h.below = append(h.below, after)
		} else {
			h.names[name] = true
		}
	}
	return h
}

// CheckHost returns an error unless host may stand in Config.Hosts. It must be a name such as
// tarry.example.com, *.example.com for all names below that, or an address, without scheme or
// port.
func CheckHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		return nil
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]")); err == nil && addr.Is6() && addr.Zone() == "" && strings.HasSuffix(inner, "]") {
			return nil
		}
	}
	name := strings.TrimSuffix(strings.TrimPrefix(host, "*."), ".")
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.ContainsFunc(label, func(r rune) bool {
			return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) {
			return fmt.Errorf("%q is not the name of a host, such as tarry.example.com, *.example.com or 192.0.2.7", host)
		}
	}
	return nil
}

// splitHost splits the value of a Host header. name is in the form for comparison; port is ""
// if there is none.
func splitHost(s string) (name, port string, ok bool) {
	name = s
	bracketed := strings.HasPrefix(s, "[")
	if bracketed && strings.HasSuffix(s, "]") {
		name = s[1 : len(s)-1]
	} else if strings.Contains(s, ":") {
		var err error
		name, port, err = net.SplitHostPort(s)
		if err != nil || port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
			return "", "", false
		}
	}
	if bracketed != strings.Contains(name, ":") {
		return "", "", false
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name, port, name != ""
}

// own reports whether the server answers for a name that splitHost returned, and whether
// Config.Hosts says so.
func (h *hosts) own(name string, r *http.Request) (own, told bool) {
	if h.names[name] {
		return true, name != "localhost"
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		addr = addr.WithZone("").Unmap()
		if h.addrs[addr] {
			return true, true
		}
		tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr) // the address that the connection came in on
		return addr.IsLoopback() || (ok && tcp.AddrPort().Addr().WithZone("").Unmap() == addr), false
	}
	for i, b := range h.below {
		if len(name) > len(b) && strings.HasSuffix(name, b) {
			return true, i > 0 // the first is .localhost
		}
	}
	return false, false
}

// admit refuses requests for a foreign host name, and requests from web pages of another
// origin.
func (h *hosts) admit(r *http.Request) error {
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		return nil // both reveal nothing, and a probe may know only an address
	}
	name, port, ok := splitHost(r.Host)
	own, told := h.own(name, r)
	switch {
	case r.Host == "":
		return refusal(http.StatusForbidden, "forbidden", "the request names no host", "send a Host header")
	case !ok || !own:
		hint := "use a name or address of the server"
		if ok {
			hint = "if that is a name of it, start it with tarry serve --host " + engine.Clip(name)
		}
		return refusal(http.StatusForbidden, "forbidden", fmt.Sprintf("this server does not answer for the host %q", engine.Clip(r.Host)), hint)
	}
	if foreign(r, name, port, told) {
		return refusal(http.StatusForbidden, "forbidden", "the request comes from a web page of another origin",
			"pages of this server's own origin alone may call it; a proxy before it has to pass on the Host header")
	}
	return nil
}

// foreign reports whether a browser says that the request comes from a page of another origin.
// For a name in Config.Hosts both http and https are accepted, since a proxy may change the
// scheme. Otherwise the scheme must be the connection's own.
func foreign(r *http.Request, name, port string, told bool) bool {
	origins, sites := r.Header["Origin"], r.Header["Sec-Fetch-Site"]
	if len(origins) > 1 || len(sites) > 1 {
		return true
	}
	if len(origins) == 1 {
		scheme, rest, _ := strings.Cut(origins[0], "://")
		standard := "80"
		switch {
		case scheme == "http" && (r.TLS == nil || told):
		case scheme == "https" && (r.TLS != nil || told):
			standard = "443"
		default:
			return true
		}
		from, fromPort, ok := splitHost(rest)
		if !ok || from != name || cmp.Or(fromPort, standard) != cmp.Or(port, standard) {
			return true
		}
	}
	if len(sites) == 0 || sites[0] == "same-origin" || sites[0] == "none" {
		return false
	}
	// Following a link from elsewhere is allowed: the page with the link cannot see the answer.
	return (r.Method != http.MethodGet && r.Method != http.MethodHead) || len(origins) > 0 ||
		r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}
