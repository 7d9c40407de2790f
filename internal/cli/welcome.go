package cli

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/tarryhq/tarry"
)

// welcome says where the server listens, where it stores data, and what to try first.
func (p *Program) welcome(on *listeners, s *serveFlags, caps tarry.Capabilities) {
	data := "engine " + shown(caps.Name)
	if dir, ok := diskDir(s.store); ok {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		data = dir
	} else if caps.Name == "mem" {
		data = "in memory only; it is lost when this process ends"
	}
	if on.http == nil {
		fmt.Fprintf(p.Stdout, "tarry %s listens on %s for clients of beanstalkd\ndata: %s\n", readBuild().Version, reachable(on.beanstalk.Addr()), data)
		return
	}
	url, at, with := "http://"+reachable(on.http.Addr()), "", ""
	if s.guard.tls.Cert != "" {
		url = "https://" + reachable(on.http.Addr())
	}
	if url != defaultServer {
		at = " --server " + url
	}
	if s.guard.tokens != "" {
		with = ", with a token in TARRY_TOKEN"
	}
	fmt.Fprintf(p.Stdout, "tarry %s listens on %s\ndashboard: %[2]s/\n", readBuild().Version, url)
	if on.beanstalk != nil {
		fmt.Fprintln(p.Stdout, "clients of beanstalkd:", reachable(on.beanstalk.Addr()))
	}
	fmt.Fprintf(p.Stdout, `data: %s
try%s:
  tarry push hello '"hi"' --in 10s%s
  tarry work hello%[3]s -- cat
`, data, with, at)
}

// reachable returns an address that a client on this machine can use.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	switch {
	case ok && tcp.IP.IsUnspecified():
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	case addr.Network() == "unix":
		return "unix:" + addr.String()
	}
	return addr.String()
}
