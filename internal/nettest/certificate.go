package nettest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificate makes a self-signed certificate for 127.0.0.1, as files and for a server. It is
// valid for an hour.
func Certificate(t testing.TB) (server *tls.Config, certFile, keyFile string) {
	return CertificateBetween(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

// CertificateBetween is Certificate with a given period of validity.
func CertificateBetween(t testing.TB, from, to time.Time) (server *tls.Config, certFile, keyFile string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "tarry"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "crt"), filepath.Join(dir, "key")
	must(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	must(os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	must(err)
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, certFile, keyFile
}
