package webhook

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry"
)

// addresses are all that are tried, and what they are; "" is public.
var addresses = map[string]string{
	// public
	"1.1.1.1": "", "8.8.8.8": "", "9.255.255.255": "", "11.0.0.0": "", "93.184.216.34": "",
	"100.63.255.255": "", "100.128.0.0": "", "126.255.255.255": "", "128.0.0.1": "", "169.253.255.255": "", "169.255.0.0": "",
	"172.15.255.255": "", "172.32.0.0": "", "192.0.1.0": "", "192.0.3.1": "", "192.167.255.255": "", "192.169.0.0": "",
	"198.17.255.255": "", "198.20.0.0": "", "223.255.255.255": "",
	"2606:4700:4700::1111": "", "2a00:1450::1": "", "2001:200::1": "", "2001:4860:4860::8888": "",
	"::ffff:8.8.8.8": "", "64:ff9b::8.8.8.8": "",

	"0.0.0.0": "an unspecified", "0.1.2.3": "an unspecified", "::": "an unspecified",
	"127.0.0.1": "a loopback", "127.255.255.254": "a loopback", "::1": "a loopback",
	"10.0.0.1": "a private", "10.255.255.255": "a private", "172.16.0.1": "a private", "172.31.255.255": "a private",
	"192.168.0.1": "a private", "192.168.255.255": "a private", "fc00::1": "a private", "fd00:ec2::254": "a private", "fec0::1": "a private",
	"169.254.169.254": "a link-local", "fe80::1": "a link-local", "febf::1": "a link-local",
	"100.64.0.1": "a shared (CGNAT)", "100.100.100.200": "a shared (CGNAT)", "100.127.255.255": "a shared (CGNAT)",
	"224.0.0.1": "a multicast", "239.255.255.250": "a multicast", "ff02::1": "a multicast", "ff0e::1": "a multicast",
	"240.0.0.1": "a reserved", "255.255.255.255": "a reserved",
	"192.0.2.1": "a documentation", "198.51.100.1": "a documentation", "203.0.113.1": "a documentation",
	"2001:db8::1": "a documentation", "3fff::1": "a documentation", "3fff:fff::1": "a documentation",
	"198.18.0.1": "a benchmark", "198.19.255.255": "a benchmark", "2001:2::1": "a benchmark",
	"192.0.0.1": "a protocol's", "192.0.0.192": "a protocol's", "2001:1::1": "a protocol's", "2001:20::1": "a protocol's",
	"168.63.129.16": "a cloud's internal",

	// IPv4 within IPv6
	"::ffff:127.0.0.1": "a loopback", "::ffff:10.0.0.1": "a private", "::ffff:a9fe:a9fe": "a link-local", "::ffff:0:0": "an unspecified",
	"::127.0.0.1": "a reserved", "::10.0.0.1": "a reserved", "::ffff:0:127.0.0.1": "a reserved",
	"64:ff9b::127.0.0.1": "a loopback", "64:ff9b::a00:1": "a private", "64:ff9b::169.254.169.254": "a link-local", "64:ff9b:1::8.8.8.8": "a reserved",
	"2002:7f00:1::": "a 6to4", "2002:a00:1::1": "a 6to4", "2002:808:808::1": "a 6to4", "192.88.99.1": "a 6to4",
	"2001:0:4136:e378:8000:63bf:3fff:fdd2": "a Teredo", "2001::f5ff:fffe": "a Teredo",

	"100::1": "a reserved", "5f00::1": "a reserved", "4000::1": "a reserved", "::2": "a reserved",
	"fe80::1%eth0": "a link's", "2606:4700::1%eth0": "a link's", "::ffff:8.8.8.8%eth0": "a link's",
}

func TestAddressesThatAreNotPublic(t *testing.T) {
	for s, want := range addresses {
		a := netip.MustParseAddr(s)
		if got := notPublic(a); got != want {
			t.Errorf("%s is %q, want %q", s, got, want)
		}
		err := publicOnly(t.Context(), "tcp", netip.AddrPortFrom(a, 443).String(), nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want+" address") {
			t.Errorf("a connection to %s: %v", s, err)
		}
		host := s
		if a.Is6() {
			host = "[" + strings.Replace(s, "%", "%25", 1) + "]"
		}
		for _, scheme := range []string{"http", "https"} {
			target, err := New(&Config{URL: scheme + "://" + host + ":8443/x"})
			if (err == nil) != (want == "") || err != nil && !errors.Is(err, tarry.ErrInvalid) {
				t.Errorf("%s://%s: %v", scheme, host, err)
			}
			if target != nil {
				target.Close()
			}
		}
	}
	if err := publicOnly(t.Context(), "unix", "/run/x.sock", nil); err == nil {
		t.Error("a connection to a socket of this machine is allowed")
	}
}

// None of these reaches a server on loopback, however it is written.
func TestFormsOfLoopbackThatNewRefuses(t *testing.T) {
	for _, url := range []string{
		"http://localhost", "http://LOCALHOST:80", "http://localhost.", "http://a.localhost", "http://a.b.localhost.",
		"http://127.1", "http://127.0.1", "http://0177.0.0.1", "http://0x7f.0.0.1", "http://0x7f000001", "http://0x7F.1", "http://2130706433",
		"http://017700000001", "http://127.0.0.01", "http://127.0.0.1.", "http://0", "http://0.", "http://0x", "http://127.0.0.256", "http://1.1.1.1.1",
		"http://public.example@127.0.0.1", "http://public.example:80@[::1]", "http://public.example%40127.0.0.1@127.0.0.1", "http://u:p@localhost",
		`http://public.example\@127.0.0.1`, "http://127.0.0.1#@public.example", "http://127.0.0.1?@public.example", "http://127.0.0.1:80:80",
		"http://[::ffff:127.0.0.1]", "http://[::ffff:7f00:1]", "http://[0:0:0:0:0:ffff:127.0.0.1]", "http://[fe80::1%25lo]", "http://[::1%25lo]", "http://[::1].",
		"http://[127.0.0.1]", "http:127.0.0.1", "http:///127.0.0.1", "//127.0.0.1", "http://%00127.0.0.1", "http://１２７.0.0.1", "http://loc%61lhost",
	} {
		target, err := New(&Config{URL: url})
		if !errors.Is(err, tarry.ErrInvalid) {
			t.Errorf("%s: %v", url, err)
		}
		if target != nil {
			target.Close()
		}
	}
}

// dialed notes which addresses a target was allowed to call, and calls none of them.
type dialed struct {
	mu  sync.Mutex
	all []string
}

var errNoNetwork = errors.New("the test has no network")

func (d *dialed) instead(allow func(context.Context, string, string, syscall.RawConn) error) func(context.Context, string, string, syscall.RawConn) error {
	return func(ctx context.Context, network, address string, c syscall.RawConn) error {
		if err := allow(ctx, network, address, c); err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all = append(d.all, address)
		return errNoNetwork
	}
}

// take returns what was allowed since it was last asked.
func (d *dialed) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.all
	d.all = nil
	slices.Sort(all)
	return all
}

func TestNamesAreCheckedAsTheyAreCalled(t *testing.T) {
	z := zone{
		"public.example":        {{"93.184.216.34", "2606:4700::1"}},
		"private.example":       {{"10.0.0.1"}},
		"six.example":           {{"::1", "fd00::1"}},
		"mapped.example":        {{"::ffff:127.0.0.1"}},
		"metadata.example":      {{"169.254.169.254"}},
		"both.example":          {{"10.0.0.1", "93.184.216.34"}},
		"rebind.example":        {{"93.184.216.34"}, {"127.0.0.1"}, {"::1"}, {"93.184.216.34"}},
		"localhost.example":     {{"127.0.0.1"}},
		"127.0.0.1.nip.example": {{"127.0.0.1"}},
	}
	for _, c := range []struct {
		host string
		want []string // what each attempt may call; "": nothing
	}{
		{"public.example", []string{"93.184.216.34:80 [2606:4700::1]:80"}},
		{"PUBLIC.example.", []string{"93.184.216.34:80 [2606:4700::1]:80"}},
		{"private.example", []string{""}},
		{"private.example.", []string{""}},
		{"public.example@private.example", []string{""}},
		{"six.example", []string{""}},
		{"mapped.example", []string{""}},
		{"metadata.example", []string{""}},
		{"localhost.example", []string{""}},
		{"127.0.0.1.nip.example", []string{""}},
		{"both.example", []string{"93.184.216.34:80"}},
		{"rebind.example", []string{"93.184.216.34:80", "", "", "93.184.216.34:80"}},
		{"127.0.0.①", []string{""}},
		{"①②⑦.⓪.⓪.①", []string{""}}, // in circles
		{"nobody.example", []string{""}},
	} {
		t.Run(c.host, func(t *testing.T) {
			target := open(t, &Config{URL: "http://" + c.host + "/paid"})
			var d dialed
			target.dialer.ControlContext = d.instead(target.dialer.ControlContext)
			target.dialer.Resolver = resolver(t, z)
			for i, want := range c.want {
				err := target.Send(t.Context(), message("x"))
				if got := strings.Join(d.take(), " "); got != want {
					t.Errorf("attempt %d called %q, want %q", i, got, want)
				}
				// Retried, as a target that is down: names are mended too.
				if err == nil || strings.HasPrefix(err.Error(), "bury") || strings.HasPrefix(err.Error(), "retry in") {
					t.Errorf("attempt %d: %v", i, err)
				}
				if want == "" && c.host != "nobody.example" && !strings.Contains(err.Error(), "private ones are allowed") {
					t.Errorf("attempt %d does not say what to set: %v", i, err)
				}
			}
		})
	}
}

func TestPrivateAddressesWhereAllowed(t *testing.T) {
	var calls atomic.Int64
	at := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	port := at[strings.LastIndexByte(at, ':'):]
	for _, host := range []string{"127.0.0.1", "localhost", "private.example"} {
		target := open(t, &Config{URL: "http://" + host + port, Options: local()})
		target.dialer.Resolver = resolver(t, zone{"private.example": {{"127.0.0.1"}}})
		if err := target.Send(t.Context(), message("x")); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	// The very server that is reached when that is allowed.
	target := open(t, &Config{URL: "http://private.example" + port})
	target.dialer.Resolver = resolver(t, zone{"private.example": {{"127.0.0.1"}}})
	if err := target.Send(t.Context(), message("x")); err == nil || !strings.Contains(err.Error(), "127.0.0.1 is a loopback address") {
		t.Errorf("not allowed: %v", err)
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("%d calls", n)
	}
}
