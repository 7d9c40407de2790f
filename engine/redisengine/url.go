package redisengine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() {
	for _, scheme := range []string{"redis", "rediss", "redis+unix", "redis+cluster", "redis+sentinel"} {
		engine.Register(scheme, func(ctx context.Context, u *url.URL) (engine.Engine, error) { return Open(ctx, u) })
	}
}

// Open opens the engine of a URL:
//
//	redis://user:password@host:6379/0
//	rediss://host:6379                                   over TLS
//	redis+unix:///run/redis/redis.sock?db=0              over a Unix socket
//	redis+cluster://host:7000?addr=host:7001&addr=…      Redis Cluster
//	redis+sentinel://host:26379/master/0?addr=host:26380 a master by Sentinel
//
// Options: addr, repeated, for further nodes or sentinels; prefix, shards, replicas,
// at_most_once, evict, pace, history and history_max as in Config; password_file, which replaces a password in the URL;
// for cluster and Sentinel tls=true; for Sentinel sentinel_user and sentinel_password_file.
// With TLS the system's certificates and those of ca_file are trusted; cert_file and
// key_file are the client's own.
//
// It fails with ErrInvalid if the URL or the server is unsuitable, ErrUnauthorized for a
// wrong password, and ErrUnavailable if no server answers.
func Open(ctx context.Context, u *url.URL) (*Engine, error) {
	option, cfg, err := parse(u)
	if err != nil {
		return nil, err
	}
	conns := &connections{open: make(map[*connection]struct{})}
	option.DialCtxFn = conns.dial
	client, err := connect(ctx, option)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "redis+cluster" && client.Mode() != rueidis.ClientModeCluster {
		client.Close()
		return nil, unreached(option, errNoCluster)
	}
	e, err := New(ctx, client, cfg)
	if err != nil {
		client.Close()
		return nil, err
	}
	e.conns = conns
	return e, nil
}

// Timeouts of connections. A silent connection is pinged after a while, and closed if it
// stays silent.
const (
	dialTimeout = 3 * time.Second
	keepAlive   = 5 * time.Second
	ioTimeout   = 3 * time.Second
	refresh     = 5 * time.Second  // interval for sentinels
	topology    = 10 * time.Second // interval for a cluster's topology
)

// connect makes a client and checks that a server answers. NewClient takes no context, so it
// runs in the background.
func connect(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	type made struct {
		client rueidis.Client
		err    error
	}
	done := make(chan made, 1)
	go func() {
		client, err := rueidis.NewClient(option)
		done <- made{client, err}
	}()
	select {
	case m := <-done:
		return m.client, unreached(option, m.err)
	case <-ctx.Done():
		go func() {
			if m := <-done; m.err == nil {
				m.client.Close()
			}
		}()
		return nil, unreached(option, ctx.Err())
	}
}

var errNoCluster = errors.New("no cluster")

// unreached explains why no connection was made.
func unreached(option rueidis.ClientOption, err error) error {
	if err == nil {
		return nil
	}
	where := strings.Join(option.InitAddress, ", ")
	out := &engine.Error{Op: "open", Err: fmt.Errorf("%w: %v", engine.ErrUnavailable, err), Hint: "check that Redis runs at " + where}
	var tlsErr *tls.CertificateVerificationError
	text := err.Error()
	switch {
	case errors.As(err, &tlsErr):
		out.Hint = "the certificate of " + where + " is not trusted; set ca_file to its authority"
	case errors.Is(err, errNoCluster), strings.Contains(text, "cluster support disabled"):
		out.Err, out.Hint = engine.ErrInvalid, where+" is not a Redis Cluster; use redis://"
	case strings.Contains(text, "unknown command `HELLO`"), errors.Is(err, rueidis.ErrNoCache), errors.Is(err, rueidis.ErrRESP2PubSubMixed):
		out.Err, out.Hint = engine.ErrInvalid, fmt.Sprintf("the Redis at %s is too old; tarry needs %d.0 or later", where, minVersion)
	case strings.Contains(text, "unknown command 'SENTINEL'"):
		out.Err, out.Hint = engine.ErrInvalid, "there is no Sentinel at "+where+"; name sentinels, or use redis:// for a server"
	case strings.Contains(text, "No such master"):
		out.Err, out.Hint = engine.ErrInvalid, fmt.Sprintf("the sentinels at %s know no master %q", where, option.Sentinel.MasterSet)
	case strings.Contains(text, "DB index is out of range"):
		out.Err, out.Hint = engine.ErrInvalid, "this Redis has no database "+strconv.Itoa(option.SelectDB)
	default:
		if _, ok := rueidis.IsRedisErr(err); ok {
			return fault("open", "", err)
		}
	}
	return out
}

// parse parses a URL.
func parse(u *url.URL) (rueidis.ClientOption, *Config, error) {
	r := storeurl.New(u)
	option := rueidis.ClientOption{
		DisableCache:     true,
		Dialer:           net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive},
		ConnWriteTimeout: ioTimeout,
		// One connection carries everything: calls are few and large.
		PipelineMultiplex: -1,
		ClientName:        "tarry",
	}
	cfg := new(Config)
	r.Text("prefix", &cfg.Prefix)
	r.Bool("at_most_once", &cfg.AtMostOnce)
	r.Bool("evict", &cfg.Evict)
	r.Pace(&cfg.Pace)
	r.History(&cfg.History)
	var n int64
	if r.Int("replicas", &n) {
		cfg.Replicas = int(min(n, maxReplicas+1))
	}
	if r.Int("shards", &n) {
		if cfg.Shards = int(min(n, MaxShards+1)); cfg.Shards == 0 {
			r.Fail("a queue has 1 to %d shards", MaxShards)
		}
	}
	option.Username = u.User.Username()
	r.Password("password_file", &option.Password)
	port, path := "6379", strings.Trim(u.Path, "/")
	useTLS := false
	switch u.Scheme {
	case "redis":
		option.ForceSingleClient = true
	case "rediss":
		option.ForceSingleClient, useTLS = true, true
	case "redis+unix":
		option.ForceSingleClient = true
		if path = ""; r.Int("db", &n) {
			option.SelectDB = int(min(n, math.MaxInt32))
		}
	case "redis+cluster":
		r.Bool("tls", &useTLS)
		option.ClusterOption.ShardsRefreshInterval = topology
		if path != "" {
			r.Fail("Redis Cluster has no numbered databases; leave out the path")
		}
	case "redis+sentinel":
		port = "26379"
		r.Bool("tls", &useTLS)
		option.Sentinel.MasterSet, path, _ = strings.Cut(path, "/")
		if option.Sentinel.MasterSet == "" {
			r.Fail("name the master, as in redis+sentinel://host:26379/mymaster")
		}
		r.Text("sentinel_user", &option.Sentinel.Username)
		r.Secret("sentinel_password_file", &option.Sentinel.Password)
		option.Sentinel.Dialer = option.Dialer
		option.Sentinel.TopologyRefreshInterval = refresh
	default:
		r.Fail("the scheme is redis, rediss, redis+unix, redis+cluster or redis+sentinel")
	}
	if path != "" {
		r.Number("the database", path, &n)
		option.SelectDB = int(min(n, math.MaxInt32))
	}
	addrs := []string{u.Host}
	if u.Scheme == "redis+cluster" || u.Scheme == "redis+sentinel" {
		addrs = append(addrs, r.List("addr")...)
	} else if u.Query().Has("addr") {
		r.Fail("one server has one address; for several use redis+cluster or redis+sentinel")
	}
	for _, addr := range addrs {
		option.InitAddress = append(option.InitAddress, storeurl.Address(addr, port))
	}
	if u.Scheme == "redis+unix" {
		option.InitAddress = []string{u.Path}
		if u.Path == "" || u.Host != "" {
			r.Fail("an example is redis+unix:///run/redis/redis.sock?db=0")
		}
	} else if u.Host == "" {
		r.Fail("an example is redis://127.0.0.1:6379/0")
	}
	if useTLS {
		option.TLSConfig = r.TLS() // each node's certificate must have its own name
		option.Sentinel.TLSConfig = option.TLSConfig
	}
	if u.Opaque != "" || u.Fragment != "" {
		r.Fail("an example is redis://127.0.0.1:6379/0")
	}
	return option, cfg, r.Done()
}
