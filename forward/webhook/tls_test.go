package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tarryhq/tarry/internal/nettest"
)

func TestOverTLSWithAnAuthorityOfOnesOwn(t *testing.T) {
	for _, proto := range []int{1, 2} {
		var others atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != proto {
				others.Add(1)
			}
			body, _ := io.ReadAll(r.Body)
			if string(body) == "gone" {
				http.Error(w, "no such shop", http.StatusGone)
			}
		}))
		s.EnableHTTP2 = proto == 2
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		defer s.Close()
		o := local()
		stranger := open(t, &Config{URL: s.URL, Options: o})
		if err := stranger.Send(t.Context(), message("x")); err == nil || !strings.Contains(err.Error(), "certificate") || strings.HasPrefix(err.Error(), "bury") {
			t.Errorf("an authority that is not known: %v", err)
		}
		pool := x509.NewCertPool()
		pool.AddCert(s.Certificate())
		o.TLS = &tls.Config{RootCAs: pool}
		target := open(t, &Config{URL: s.URL, Options: o})
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				if err := target.Send(t.Context(), message("x")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := target.Send(t.Context(), message("gone")); err == nil || !strings.HasSuffix(err.Error(), "answered 410 Gone: no such shop") {
			t.Errorf("HTTP/%d: %v", proto, err)
		}
		if n := others.Load(); n > 0 {
			t.Errorf("%d requests were not of HTTP/%d", n, proto)
		}
	}
}

func TestProxiesOnlyWhenAsked(t *testing.T) {
	var asked atomic.Value
	asked.Store("")
	proxy := serve(t, func(_ http.ResponseWriter, r *http.Request) { asked.Store(r.RequestURI) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy)
	}
	target := open(t, &Config{URL: "http://shop.example/paid"})
	target.dialer.Resolver = resolver(t, nil)
	if err := target.Send(t.Context(), message("x")); err == nil || asked.Load() != "" {
		t.Errorf("of the environment: %v, asked for %q", err, asked.Load())
	}
	u, _ := url.Parse(proxy)
	if err := open(t, &Config{URL: "http://shop.example/paid", Proxy: u}).Send(t.Context(), message("x")); err != nil || asked.Load() != "http://shop.example/paid" {
		t.Errorf("of the config: %v, asked for %q", err, asked.Load())
	}
}

// swallows is a connection of which the other side hears nothing more once it is cut.
type swallows struct {
	net.Conn
	cut atomic.Bool
}

func (c *swallows) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Over HTTP/2 all shares a connection, so one that is dead must be found out.
func TestDeadConnectionOfHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := nettest.Listen()
		var protos []string
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { protos = append(protos, r.Proto) }))
		s.Listener.Close()
		s.EnableHTTP2, s.Listener, s.Config.ErrorLog = true, l, log.New(io.Discard, "", 0)
		s.StartTLS()
		defer s.Close()
		pool := x509.NewCertPool()
		pool.AddCert(s.Certificate())
		var last *swallows
		cfg := &Config{URL: "https://example.com", Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := l.Dial(ctx, network, address)
			last = &swallows{Conn: conn}
			return last, err
		}}
		cfg.Options.TLS = &tls.Config{RootCAs: pool}
		target := open(t, cfg)
		defer target.Close()
		if err := target.Send(t.Context(), message("x")); err != nil {
			t.Fatal(err)
		}
		first := last
		first.cut.Store(true)
		defer first.Close()
		if err := target.Send(t.Context(), message("x")); err == nil {
			t.Error("over a dead connection it was sent")
		}
		if err := target.Send(t.Context(), message("x")); err != nil {
			t.Error(err)
		}
		if want := []string{"HTTP/2.0", "HTTP/2.0"}; !slices.Equal(protos, want) || last == first {
			t.Errorf("the receiver was called over %v", protos)
		}
	})
}
