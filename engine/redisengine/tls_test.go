package redisengine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
	"github.com/tarryhq/tarry/internal/nettest"
)

// authority issues certificates into a folder.
type authority struct {
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "an authority of a test"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key, a.cert = a.issue(t, "ca", template)
	return a
}

// issue writes name.crt and name.key.
func (a *authority) issue(t *testing.T, name string, template *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".crt", "CERTIFICATE", der)
	a.write(t, name+".key", "PRIVATE KEY", secret)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert
}

func (a *authority) write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// server issues the certificate of a server for its names, and returns the arguments
// with which it listens, and where.
func (a *authority) server(t *testing.T, names ...string) (redistest.Option, string) {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "a server"}}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	port := strconv.Itoa(nettest.FreePort(t))
	a.issue(t, port, template)
	return redistest.Args("--tls-port", port, "--tls-auth-clients", "no", "--tls-ca-cert-file", a.file("ca.crt"),
		"--tls-cert-file", a.file(port+".crt"), "--tls-key-file", a.file(port+".key")), port
}

func TestTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	option, port := a.server(t, "127.0.0.1")
	s := redistest.Start(t, option)
	secure, trust := "rediss://127.0.0.1:"+port, "ca_file="+a.file("ca.crt")
	works(t, secure, trust)
	s.Do("CONFIG", "SET", "requirepass", "hunter2")
	works(t, "rediss://:hunter2@127.0.0.1:"+port+"/1", trust)
	refused(t, secure+"?"+trust, engine.ErrUnauthorized)
	s.Do("CONFIG", "SET", "requirepass", "")

	t.Run("of an authority that is not trusted", func(t *testing.T) {
		refused(t, secure, engine.ErrUnavailable, "not trusted", "ca_file")
		refused(t, secure+"?ca_file="+newAuthority(t).file("ca.crt"), engine.ErrUnavailable, "not trusted", "ca_file")
	})
	t.Run("of a server of another name", func(t *testing.T) {
		refused(t, "rediss://localhost:"+port+"?"+trust, engine.ErrUnavailable, "localhost")
	})
	t.Run("where only one side speaks it", func(t *testing.T) {
		refused(t, "rediss://"+s.Addr(), engine.ErrUnavailable, s.Addr())
		refused(t, "redis://127.0.0.1:"+port, engine.ErrUnavailable, port)
	})
	t.Run("with certificates of clients", func(t *testing.T) {
		s.Do("CONFIG", "SET", "tls-auth-clients", "yes")
		a.issue(t, "client", &x509.Certificate{Subject: pkix.Name{CommonName: "a client"}})
		works(t, secure, trust, "cert_file="+a.file("client.crt"), "key_file="+a.file("client.key"))
		refused(t, secure+"?"+trust, engine.ErrUnavailable, port)
	})
}

// TestTLSCluster has nodes with certificates for different names, as they are where
// each is a host of its own.
func TestTLSCluster(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	option, port := a.server(t, "localhost", "127.0.0.1")
	options := []redistest.Option{redistest.NodeOption(0, option), redistest.Args("--tls-cluster", "yes", "--tls-replication", "yes")}
	for i := 1; i < 6; i++ {
		option, _ := a.server(t, "127.0.0.1")
		options = append(options, redistest.NodeOption(i, option))
	}
	c := redistest.StartCluster(t, options...)
	trust := "ca_file=" + a.file("ca.crt")
	for _, host := range []string{"127.0.0.1", "localhost"} {
		t.Run(host, func(t *testing.T) {
			e := openStore(t, "redis+cluster://"+host+":"+port, "tls=true", trust, "prefix="+freshPrefix())
			for addr := range e.client.Nodes() {
				for _, n := range c.Nodes {
					if addr == n.Addr() {
						t.Errorf("%s is connected to in the clear", addr)
					}
				}
			}
			var names []string
			for i := range 8 { // on all masters
				names = append(names, fmt.Sprint("q", i))
				push(t, e, plain(names[i], "k"))
				lease1(t, e, names[i])
			}
		})
	}
	refused(t, "redis+cluster://127.0.0.1:"+port+"?tls=true", engine.ErrUnavailable, "not trusted", "ca_file")
}

func TestTLSFilesMissing(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for query, says := range map[string]string{
		"cert_file=" + a.file("ca.crt"):                                     "key_file",
		"cert_file=" + a.file("ca.key") + "&key_file=" + a.file("ca.key"):   "cert_file",
		"cert_file=" + a.file("ca.crt") + "&key_file=" + a.file("none.key"): "none.key",
		"ca_file=" + a.file("ca.key"):                                       "ca_file",
	} {
		refused(t, "rediss://127.0.0.1?"+strings.ReplaceAll(query, "+", "%2B"), engine.ErrInvalid, says)
	}
}
