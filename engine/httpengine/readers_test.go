package httpengine

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
)

// at is a connection to an address.
type at struct {
	net.Conn
	ip net.IP
}

func (a at) RemoteAddr() net.Addr { return &net.TCPAddr{IP: a.ip, Port: 8277} }

// Whatever the resolver says of localhost, the address decides that was dialled.
func TestLocalhostThatIsElsewhere(t *testing.T) {
	for _, host := range []string{"localhost", "tarry.localhost"} {
		var log bytes.Buffer
		e := &Engine{base: &url.URL{Scheme: "http", Host: host}, own: ownTransport(nil)}
		here, there := net.Pipe()
		t.Cleanup(func() { _, _ = here.Close(), there.Close() })
		away := false
		e.own.DialContext = func(context.Context, string, string) (net.Conn, error) {
			if away {
				return at{here, net.IPv4(192, 0, 2, 7)}, nil
			}
			return at{here, net.IPv4(127, 0, 1, 1)}, nil
		}
		e.warnOfReaders(slog.New(slog.NewTextHandler(&log, nil)))
		for range 2 {
			if _, err := e.own.DialContext(t.Context(), "tcp", host); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(log.String(), "without TLS"); n != 0 && !away {
				t.Errorf("%s: warned of what stays here: %s", host, &log)
			}
			away = true
		}
		if _, err := e.own.DialContext(t.Context(), "tcp", host); err != nil || strings.Count(log.String(), "without TLS") != 1 {
			t.Errorf("%s: logged was %s", host, &log)
		}
	}
}
