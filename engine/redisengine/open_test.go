package redisengine

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// refused fails the test unless a URL cannot be opened, for this reason, which keeps
// the password to itself.
func refused(t *testing.T, rawURL string, want error, parts ...string) {
	t.Helper()
	u := params(t, rawURL)
	e, err := Open(t.Context(), u)
	if err == nil {
		_ = e.Close() // it should not be there
	}
	fails(t, err, want, parts...)
	if password, ok := u.User.Password(); ok && err != nil && strings.Contains(err.Error(), password) {
		t.Errorf("%s: the password is in the error %q", rawURL, err)
	}
}

// works fails the test unless a URL can be opened and a message goes through.
func works(t *testing.T, rawURL string, more ...string) {
	t.Helper()
	e := openStore(t, rawURL, append(more, "prefix="+freshPrefix())...)
	push(t, e, plain("q", "k"))
	if l := lease1(t, e, "q"); l.Key != "k" {
		t.Errorf("%s: leased %+v", rawURL, l)
	}
}

// silence listens and never says anything, until the test's end.
func silence(t *testing.T) (addr string) {
	return servertest.Listen(t, func(net.Conn) { <-t.Context().Done() })
}

// nobody is an address where nobody listens.
func nobody(t *testing.T) (addr string) {
	t.Helper()
	s := redistest.Start(t)
	s.Kill()
	return s.Addr()
}

func TestOpenWhenNobodyListens(t *testing.T) {
	t.Parallel()
	addr := nobody(t)
	for _, raw := range []string{
		"redis://" + addr, "rediss://" + addr, "redis+cluster://" + addr, "redis+sentinel://" + addr + "/m",
		"redis+cluster://" + addr + "?addr=" + nobody(t),
		"redis+sentinel://" + addr + "/m?addr=" + nobody(t),
	} {
		began := time.Now()
		refused(t, raw, engine.ErrUnavailable, "check that Redis runs at", addr)
		if took := time.Since(began); took > longWait {
			t.Errorf("%s: it took %v", raw, took)
		}
	}
}

func TestOpenWhenNobodyAnswers(t *testing.T) {
	t.Parallel()
	addr := silence(t)
	for _, raw := range []string{
		"redis://" + addr, "rediss://" + addr, "redis+cluster://" + addr, "redis+sentinel://" + addr + "/m",
	} {
		swift(t, raw, dialTimeout, func() time.Duration {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			return ends(t, longWait, func() {
				_, err := Open(ctx, params(t, raw))
				fails(t, err, engine.ErrUnavailable, "check that Redis runs at", addr)
			})
		})
	}
}

// TestOpenGivesUpBySilence: without a deadline of the caller's own, too.
func TestOpenGivesUpBySilence(t *testing.T) {
	t.Parallel()
	began := time.Now()
	refused(t, "redis://"+silence(t), engine.ErrUnavailable)
	if took := time.Since(began); took > longWait {
		t.Errorf("it took %v", took)
	}
}

func TestOpenWhereRedisIsNot(t *testing.T) {
	t.Parallel()
	addr := servertest.Listen(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") // the client may be gone
	})
	refused(t, "redis://"+addr, engine.ErrUnavailable, "check that Redis runs at")
}

func TestOpenWithPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("CONFIG", "SET", "requirepass", "hunter2")
	s.Do("ACL", "SETUSER", "ann", "on", ">hunter3", "~*", "&*", "+@all")
	addr := s.Addr()
	works(t, "redis://:hunter2@"+addr)
	works(t, "redis://ann:hunter3@"+addr)
	works(t, "redis://"+addr, "password_file="+file(t, "hunter2\n"))
	works(t, "redis://ann@"+addr, "password_file="+file(t, "hunter3"))
	for _, raw := range []string{
		"redis://" + addr,
		"redis://:swordfish@" + addr,
		"redis://ann:swordfish@" + addr,
		"redis://bob:swordfish@" + addr,
		"redis://" + addr + "?password_file=" + url.QueryEscape(file(t, "swordfish")),
		"redis+cluster://:swordfish@" + addr,
	} {
		refused(t, raw, engine.ErrUnauthorized, "check the user and the password")
	}
}

func TestOpenWithPasswordWithoutNeed(t *testing.T) {
	t.Parallel()
	refused(t, "redis://ann:swordfish@"+redistest.Start(t).Addr(), engine.ErrUnauthorized, "check the user and the password")
}

func TestOpenWithoutPermission(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("ACL", "SETUSER", "ann", "on", ">hunter2", "~other:*", "&other:*", "+@all")
	s.Do("ACL", "SETUSER", "bob", "on", ">hunter2", "~tarry:*", "&tarry:*", "+@all", "-eval", "-evalsha")
	refused(t, "redis://ann:hunter2@"+s.Addr(), engine.ErrForbidden, "~prefix* keys")
	refused(t, "redis://bob:hunter2@"+s.Addr(), engine.ErrForbidden, "the commands of")
	openStore(t, "redis://ann:hunter2@"+s.Addr(), "prefix=other")
}

func TestOpenReplica(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Start(t), redistest.Start(t)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica.Do("REPLICAOF", host, port)
	refused(t, replica.URL(), engine.ErrInvalid, "read-only replica", "redis+sentinel://")
	works(t, master.URL())
}

func TestOpenDatabases(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	one, two := openStore(t, s.URL()+"/1"), openStore(t, s.URL()+"/2")
	push(t, one, plain("q", "k"))
	if all := leaseAll(t, two, "q"); len(all) != 0 {
		t.Errorf("what is in one database was leased in another: %+v", all)
	}
	lease1(t, one, "q")
	refused(t, s.URL()+"/99", engine.ErrInvalid, "no database 99")
}

func TestOpenCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	t.Run("by any node", func(t *testing.T) {
		for i, n := range c.Nodes {
			works(t, "redis+cluster://"+n.Addr(), "shards="+strconv.Itoa(i+1))
		}
	})
	t.Run("by nodes of which some are down", func(t *testing.T) {
		raw := "redis+cluster://" + nobody(t) + "?addr=" + nobody(t) + "&addr=" + nobody(t) + "&addr=" + c.Nodes[4].Addr()
		for range 10 { // what any node can answer may be asked of any
			works(t, raw)
		}
	})
	t.Run("as if a node were alone", func(t *testing.T) {
		for i, n := range c.Nodes[:4] {
			began := time.Now()
			refused(t, n.URL(), engine.ErrInvalid, "redis+cluster://")
			if took := time.Since(began); took > longWait {
				t.Errorf("node %d: it took %v", i, took)
			}
		}
	})
	t.Run("where one node evicts", func(t *testing.T) {
		c.Nodes[1].Do("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
		for range 4 { // were only one node asked, it would hardly be that one each time
			refused(t, c.URL(), engine.ErrInvalid, "maxmemory-policy allkeys-lru")
		}
		works(t, c.URL(), "evict=true")
	})
}

func TestOpenNoCluster(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	refused(t, "redis+cluster://"+s.Addr(), engine.ErrInvalid, "is not a Redis Cluster", "redis://")
	refused(t, "redis+cluster://"+s.Addr()+"?addr="+s.Addr(), engine.ErrInvalid, "is not a Redis Cluster", "redis://")
}

func TestOpenNoSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	refused(t, "redis+sentinel://"+s.Addr()+"/tarry", engine.ErrInvalid, "Sentinel")
}

func TestOpenSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	first := s.Sentinels[0]
	master := "redis+sentinel://" + first.Addr() + "/" + redistest.MasterName
	t.Run("by any sentinel", func(t *testing.T) {
		works(t, s.URL())
		works(t, master+"/3")
		works(t, "redis+sentinel://"+nobody(t)+"/"+redistest.MasterName, "addr="+first.Addr())
	})
	t.Run("of a master that it does not know", func(t *testing.T) {
		refused(t, "redis+sentinel://"+first.Addr()+"/nosuch", engine.ErrInvalid, `know no master "nosuch"`)
	})
	t.Run("as if it were a server", func(t *testing.T) {
		refused(t, "redis://"+first.Addr(), engine.ErrInvalid, "redis+sentinel://")
	})
	t.Run("that wants a password", func(t *testing.T) {
		first.Do("ACL", "SETUSER", "default", ">hunter2")
		first.Do("ACL", "SETUSER", "ann", "on", ">hunter3", "&*", "+@all")
		refused(t, master, engine.ErrUnauthorized)
		works(t, master, "sentinel_password_file="+file(t, "hunter2"))
		works(t, master, "sentinel_user=ann", "sentinel_password_file="+file(t, "hunter3"))
	})
}

func TestOpenWhereMessagesMayBeEvicted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Args("--maxmemory", "100mb"))
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random"} {
		s.Do("CONFIG", "SET", "maxmemory-policy", policy)
		refused(t, s.URL(), engine.ErrInvalid, "maxmemory-policy "+policy, "noeviction", "evict=true")
		works(t, s.URL(), "evict=true")
	}
	// No key of tarry has a time to live, so what goes by that evicts none.
	for _, policy := range []string{"noeviction", "volatile-lru", "volatile-ttl"} {
		s.Do("CONFIG", "SET", "maxmemory-policy", policy)
		works(t, s.URL())
	}
	s.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "0")
	works(t, s.URL())
}

func TestOpenWithOtherShards(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	push(t, openStore(t, s.URL(), "shards=3"), plain("q", "k"))
	refused(t, s.URL()+"?shards=2", engine.ErrInvalid,
		"prefix tarry", "3 shards", "not 2", "push to a new prefix", "run workers on both")
	for _, again := range []string{"shards=3", "evict=false"} {
		if e := openStore(t, s.URL(), again); e.Shards() != 3 {
			t.Errorf("with %s the store has %d shards", again, e.Shards())
		}
	}
	if e := openStore(t, s.URL(), "prefix=other"); e.Shards() != DefaultShards || e.Capabilities().Pace != DefaultPace {
		t.Errorf("a new store has %d shards and a pace of %v", e.Shards(), e.Capabilities().Pace)
	}
	if e := openStore(t, s.URL(), "prefix=other", "pace=0"); e.Capabilities().Pace != 0 {
		t.Errorf("the pace is %v", e.Capabilities().Pace)
	}
}

func TestOpenOfAnotherFormat(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, c := range []struct{ format, shards, says string }{
		{"1", "4", "format 1"},
		{"2", "4", "format 2"},
		{"4", "4", "format 4"},
		{"3", "0", "0 shards"},
		{"3", "257", "257 shards"},
		{"3", "-1", "-1 shards"},
	} {
		s.Do("HSET", "tarry:store", "format", c.format, "shards", c.shards)
		refused(t, s.URL(), engine.ErrInvalid, c.says, "tarry:store")
	}
	// What others keep there is not overwritten, and explained somehow.
	for _, foreign := range [][]string{
		{"HSET", "tarry:store", "format", "x", "shards", "y"},
		{"SET", "tarry:store", "x"},
	} {
		s.Do("DEL", "tarry:store")
		s.Do(foreign...)
		if _, err := Open(t.Context(), params(t, s.URL())); err == nil || engine.Code(err) == "unavailable" {
			t.Errorf("%q: the error is %v", foreign, err)
		}
	}
}

func TestNewLeavesTheClientOpen(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := s.Client()
	e, err := New(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Watch(func(string) {})
	push(t, e, plain("q", "k"))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(t.Context(), c.B().Ping().Build()).Error(); err != nil {
		t.Fatalf("after Close the client says %v", err)
	}
	again, err := New(t.Context(), c, &Config{})
	if err != nil {
		t.Fatal(err)
	}
	lease1(t, again, "q")
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOpenClosesItsClient: the one that Open made, also where Open fails.
func TestOpenClosesItsClient(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openURL(t, s.URL(), "shards=2")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.client.Do(t.Context(), e.client.B().Ping().Build()).Error(); !errors.Is(err, rueidis.ErrClosing) {
		t.Errorf("after Close the client says %v", err)
	}
	refused(t, s.URL()+"?shards=3", engine.ErrInvalid)
	// goleak would not see them, as the server's end ends them, too.
	eventually(t, "the connections to be closed", func() bool {
		m := s.Do("CLIENT", "LIST")
		list, err := m.ToString()
		return err == nil && !strings.Contains(list, "name=tarry")
	})
}

// TestOpenSocket opens a store by a socket of this machine.
func TestOpenSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tarry") // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left is the system's to clean up
	path := filepath.Join(dir, "redis.sock")
	s := redistest.Start(t, redistest.Args("--unixsocket", path))
	e := openStore(t, "redis+unix://"+path+"?db=3")
	push(t, e, plain("q", "k"))
	s.Do("SELECT", "3")
	m := s.Do("EXISTS", "tarry:store")
	if n, err := m.AsInt64(); err != nil || n != 1 {
		t.Errorf("the store is not there: %d, %v", n, err)
	}
	_, err = Open(t.Context(), params(t, "redis+unix://"+path+".other"))
	fails(t, err, engine.ErrUnavailable, path+".other")
}
