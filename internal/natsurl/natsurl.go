// Package natsurl reads how to connect to NATS from the URL of a target or a source.
package natsurl

import (
	"crypto/tls"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/tarryhq/tarry/internal/storeurl"
)

// Connect reads the servers, without passwords, and the options to connect: the user or
// token, password_file, creds_file and, of tls, the certificates. base configures TLS besides.
func Connect(r *storeurl.Reader, u *url.URL, base *tls.Config) (servers []string, options []nats.Option) {
	var creds, password string
	if r.Text("creds_file", &creds) {
		options = append(options, nats.UserCredentials(creds))
	}
	switch r.Password("password_file", &password); {
	case creds != "" && (password != "" || u.User != nil):
		r.Fail("give a user or a creds_file, not both")
	case password != "":
		options = append(options, nats.UserInfo(u.User.Username(), password))
	case u.User.Username() != "":
		options = append(options, nats.Token(u.User.Username()))
	}
	if u.Scheme == "tls" {
		options = append(options, nats.Secure(r.TLSOver(base)))
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		servers = append(servers, "nats://"+storeurl.Address(host, "4222"))
	}
	if u.Opaque != "" || u.Fragment != "" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		r.Fail("an example is nats://127.0.0.1:4222?subject=orders.due")
	}
	return servers, options
}
