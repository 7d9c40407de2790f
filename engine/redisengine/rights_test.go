package redisengine

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// documentedRights are the commands that docs/engines/redis.md names.
var documentedRights = []string{"+@read", "+@write", "+@scripting", "+@connection", "+@pubsub", "+info", "+time", "+cluster", "+role"}

// documented are they, for a store with the usual prefix.
var documented = append(documentedRights, "~tarry:*", "&tarry:hints")

// user makes a Redis user with these rights, and returns the URL for it.
func user(s *redistest.Server, name string, rights ...string) string {
	s.Do(append([]string{"ACL", "SETUSER", name, "reset", "on", ">hunter2"}, rights...)...)
	return "redis://" + name + ":hunter2@" + s.Addr()
}

// TestOpenWithoutChannel: a push would be kept and answered with an error.
func TestOpenWithoutChannel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	refused(t, user(s, "ann", "~tarry:*", "+@all"), engine.ErrForbidden, "&prefix* channels")
	refused(t, user(s, "bob", "~tarry:*", "&tarry:other", "+@all"), engine.ErrForbidden, "&prefix* channels")
	refused(t, user(s, "cid", "~tarry:*", "&tarry:*", "+@all", "-publish"), engine.ErrForbidden, "the commands of")
}

// TestOpenWithTheDocumentedRights does everything with them, and no more.
func TestOpenWithTheDocumentedRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	raw := user(s, "ann", append(documentedRights, "~*", "&*:hints")...)
	suite(t, raw, enginetest.NewClock(), 1, callParts...)
	e := openStore(t, raw)
	defer e.Watch(func(string) {})()
	eventually(t, "the subscription", e.hears.Load)
}

// TestRightsTakenAway: no user may use the channel any more. Writes still succeed, and a log
// line says that no hints are received.
func TestRightsTakenAway(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	raw := user(s, "ann", documented...)
	client, err := connect(t.Context(), rueidis.ClientOption{
		InitAddress: []string{s.Addr()}, Username: "ann", Password: "hunter2", ForceSingleClient: true, DisableCache: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	told := make(chan string, 100)
	e, err := New(t.Context(), client, &Config{Logger: slog.New(slog.NewTextHandler(servertest.Lines(told), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	defer e.Watch(func(string) {})()
	eventually(t, "the subscription", e.hears.Load)
	s.Do("ACL", "SETUSER", "ann", "resetchannels") // which ends connections that listen
	select {
	case line := <-told:
		if !strings.Contains(line, "cannot receive hints") || !strings.Contains(line, "&prefix* channels") {
			t.Errorf("the log says %q", line)
		}
	case <-time.After(longWait):
		t.Fatal("nobody is told that nothing is heard")
	}
	r := push(t, e, plain("q", "k"))[0]
	l := lease1(t, e, "q")
	if l.ID != r.ID || l.Attempt != 1 {
		t.Errorf("pushed %v, leased %+v", r.ID, l)
	}
	if s := settle1(t, e, engine.Settlement{Token: l.Token, Do: engine.Release}); s.Err != nil {
		t.Error(s.Err)
	}
	refused(t, raw, engine.ErrForbidden, "&prefix* channels")
}

// TestRightsOfAScript knows what Redis says when it is a script that may not.
func TestRightsOfAScript(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, user(s, "ann", documented...))
	push(t, e, plain("q", "k"))
	s.Do("ACL", "SETUSER", "ann", "-zadd")
	results, err := e.Push(t.Context(), []engine.Message{plain("q", "other")})
	if err != nil {
		t.Fatal(err)
	}
	fails(t, results[0].Err, engine.ErrForbidden, "the commands of")
}
