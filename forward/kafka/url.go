package kafka

import (
	"math"
	"net/url"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() { link.Register(parse, New, "kafka", "kafka+tls") }

// parse parses a URL.
func parse(u *url.URL, o *forward.Options) (*Config, error) {
	r := storeurl.New(u)
	cfg := &Config{Topic: strings.Trim(u.Path, "/")}
	if m := mechanism(r, u); m != nil {
		cfg.Client = append(cfg.Client, kgo.SASL(m))
	}
	if u.Scheme == "kafka+tls" {
		cfg.Client = append(cfg.Client, kgo.DialTLSConfig(r.TLSOver(o.TLS)))
	}
	var n int64
	if r.Bytes("max_bytes", &n) {
		if n < 1<<10 || n > math.MaxInt32 {
			r.Fail("max_bytes is 1KiB to 2147483647")
		}
		cfg.MaxBytes = int32(min(n, math.MaxInt32))
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		cfg.Brokers = append(cfg.Brokers, storeurl.Address(host, "9092"))
	}
	if u.Opaque != "" || u.Fragment != "" || u.Host == "" {
		r.Fail("an example is kafka://127.0.0.1:9092/orders")
	}
	return cfg, r.Done()
}

// mechanism returns how the client authenticates; nil: without a user.
func mechanism(r *storeurl.Reader, u *url.URL) sasl.Mechanism {
	user, name, password := u.User.Username(), "plain", ""
	given := r.Text("sasl", &name)
	withPassword := r.Password("password_file", &password)
	if user == "" {
		if given || withPassword {
			r.Fail("name the user, as in kafka://USER@host:9092/orders")
		}
		return nil
	}
	switch name {
	case "plain":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case "scram-sha-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "scram-sha-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	r.Fail("sasl is plain, scram-sha-256 or scram-sha-512")
	return nil
}
