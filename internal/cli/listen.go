package cli

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// listeners are what serve listens on. One that is not wanted is nil.
type listeners struct{ http, beanstalk net.Listener }

// listen listens on the addresses of the flags, unless others could reach everything.
func (s *serveFlags) listen(ctx context.Context) (on *listeners, err error) {
	on = new(listeners)
	defer func() {
		if err != nil {
			on.close()
		}
	}()
	if !s.noHTTP {
		if on.http, err = listenTCP(ctx, "--http", s.http); err != nil {
			return on, err
		}
		if err = s.guard.checkExposed(s.http, on.http.Addr()); err != nil {
			return on, err
		}
	}
	on.beanstalk, err = s.beanstalk.listen(ctx, &s.guard)
	return on, err
}

func (on *listeners) close() {
	for _, l := range []net.Listener{on.http, on.beanstalk} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// warn says what any client that reaches the addresses can do.
func (on *listeners) warn(p *Program, s *serveFlags, guard *guarding) {
	if on.http != nil {
		guard.warn(p, s.http, on.http.Addr())
	}
	if on.beanstalk != nil {
		guard.warn(p, s.beanstalk.address, on.beanstalk.Addr())
	}
}

// listenTCP listens on an address HOST:PORT that a flag gave.
func listenTCP(ctx context.Context, flag, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	form, other := "an address is HOST:PORT, such as 127.0.0.1:8277", flag+" "+net.JoinHostPort(host, "0")
	if flag == "-p" {
		form, other = "-l takes an address such as 127.0.0.1, and -p a port such as 11300", "-p 0"
	}
	if err != nil || port == "" {
		return nil, usagef(form, "%s %q is not an address", flag, address)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, failedf(err, "stop what listens there, or choose another with "+flag+", such as "+other,
			"cannot listen on %s: the port is in use", address)
	case errors.Is(err, syscall.EACCES):
		return nil, failedf(err, "choose a port above 1023", "cannot listen on %s: not allowed", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, usagef("choose an address of this machine, such as 127.0.0.1:8277", "cannot listen on %s: no such address here", address)
	case errors.As(err, new(*net.DNSError)), errors.As(err, new(*net.AddrError)):
		return nil, usagef(form, "cannot listen on %s: %v", address, err)
	}
	return nil, failedf(err, "choose another address with "+flag, "cannot listen on %s: %v", address, err)
}

// listenUnix listens on a unix socket. It removes a socket that was left behind, which nothing
// listens on.
func listenUnix(ctx context.Context, flag, path string) (net.Listener, error) {
	if path == "" {
		return nil, usagef("as in unix:/run/tarry.sock", "%s names no socket", flag)
	}
	var d net.Dialer
	if there, err := os.Lstat(path); err == nil && there.Mode().Type() == os.ModeSocket {
		c, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			_ = c.Close()
			return nil, failedf(nil, "stop what listens there, or choose another with "+flag, "cannot listen on %s: the socket is in use", path)
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path) // listening reports the error
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, failedf(err, "choose another socket with "+flag, "cannot listen on %s: %v", path, err)
	}
	return l, nil
}
