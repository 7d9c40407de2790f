package redisengine

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

var allScripts = []*script{
	pushScript, leaseScript, claimScript, settleScript, cancelScript, rescheduleScript, getScript, peekScript, findScript, listScript, fetchScript, countScript,
	configureScript, spreadScript, settingsScript, forecastScript, purgeScript, redriveScript, pauseScript, clearScript, shedScript, openScript, idsScript, registerScript, forgetScript,
}

// atStart is how many scripts were made before TestMain.
var atStart int

func scriptsMade() (n int) {
	for _, s := range allScripts {
		if s.text != "" || s.sha != "" || s.readOnly != nil && s.readOnly.text != "" {
			n++
		}
	}
	return n
}

// TestScriptsAreMadeWhenUsed, since every program that can open a store pays for what is
// done before main.
func TestScriptsAreMadeWhenUsed(t *testing.T) {
	t.Parallel()
	if atStart > 0 {
		t.Errorf("%d scripts were made before anybody used one", atStart)
	}
	if text, sha := pushScript.source(); len(sha) != 40 || !strings.Contains(text, "return reply(answer") {
		t.Errorf("%s is %q", sha, text)
	}
}

// everyCall makes all calls of an engine once, each of which must do something, with
// before in front of each.
func everyCall(t *testing.T, e *Engine, before func()) {
	t.Helper()
	ctx, m, ref := t.Context(), plain("q", "k"), engine.Ref{Queue: "q", Key: "k"}
	var token string
	settle := func(do engine.Action, becomes engine.State) func() (bool, error) {
		return func() (bool, error) {
			s, err := e.Settle(ctx, []engine.Settlement{{Token: token, Do: do}})
			return err == nil && s[0].Err == nil && s[0].State == becomes, err
		}
	}
	pushes := func() (bool, error) {
		r, err := e.Push(ctx, []engine.Message{m})
		return err == nil && r[0].Err == nil && r[0].Outcome == engine.Created, err
	}
	for _, c := range []struct {
		name string
		call func() (ok bool, err error)
	}{
		{"push", pushes},
		{"lease", func() (bool, error) {
			g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 1}})
			if err != nil || len(g.Queues[0].Messages) != 1 {
				return false, err
			}
			token = g.Queues[0].Messages[0].Token
			return true, nil
		}},
		{"release", settle(engine.Release, engine.Ready)},
		{"peek", func() (bool, error) {
			first, err := e.Peek(ctx, []string{"q"})
			return err == nil && first[0].Key == "k", err
		}},
		{"claim", func() (bool, error) {
			l, err := e.Claim(ctx, ref, engine.Want{})
			token = l.Token
			return l.Key == "k", err
		}},
		{"bury", settle(engine.Bury, engine.Dead)},
		{"redrive", func() (bool, error) {
			n, err := e.Redrive(ctx, "q", nil, 0)
			return n.Redriven == 1, err
		}},
		{"reschedule", func() (bool, error) {
			i, err := e.Reschedule(ctx, ref, engine.When{In: time.Hour})
			return i.State == engine.Scheduled, err
		}},
		{"get", func() (bool, error) {
			i, err := e.Get(ctx, ref)
			return string(i.Body) == string(m.Body), err
		}},
		{"find", func() (bool, error) {
			i, err := e.Get(ctx, ref)
			if err != nil {
				return false, err
			}
			queues, err := e.Find(ctx, []engine.ID{i.ID})
			return err == nil && queues[0] == "q", err
		}},
		{"list", func() (bool, error) {
			page, err := e.List(ctx, engine.ListQuery{Queue: "q", State: engine.Scheduled, Limit: 1})
			return len(page.Messages) == 1, err
		}},
		{"queue", func() (bool, error) {
			info, err := e.Queue(ctx, "q")
			return info.Scheduled == 1, err
		}},
		{"queues", func() (bool, error) {
			queues, _, err := e.Queues(ctx, "", 1)
			return len(queues) == 1, err
		}},
		{"forecast", func() (bool, error) {
			f, err := e.Forecast(ctx, "q", time.Hour, 2*time.Hour)
			return len(f.Buckets) == 2 && f.Buckets[0].Count+f.Buckets[1].Count == 1, err
		}},
		{"pause", func() (bool, error) { return true, e.Pause(ctx, "q", 0) }},
		{"resume", func() (bool, error) { return true, e.Resume(ctx, "q") }},
		{"cancel", func() (bool, error) {
			errs, err := e.Cancel(ctx, []engine.Ref{ref})
			return err == nil && errs[0] == nil, err
		}},
		{"push again", pushes},
		{"purge", func() (bool, error) {
			n, err := e.Purge(ctx, "q", engine.PurgeDead)
			return n == 1, err
		}},
		{"queues of nothing", func() (bool, error) { // it would forget the queue, were that not noted lately
			queues, _, err := e.Queues(ctx, "", 1)
			return len(queues) == 0, err
		}},
		{"settings", func() (bool, error) {
			if _, err := e.Configure(ctx, "configured", engine.Settings{InFlight: 2}, ""); err != nil {
				return false, err
			}
			s, _, err := e.Settings(ctx, "configured")
			return s.InFlight == 2, err
		}},
		{"clear", func() (bool, error) {
			a := e.ask1(ctx, clearScript, e.queue("q").shards[0])
			return len(a.values) == 0, a.err
		}},
		{"shed", func() (bool, error) {
			a := e.ask1(ctx, shedScript, e.queue("q").shards[0])
			return len(a.values) == 0, a.err
		}},
	} {
		before()
		if ok, err := c.call(); !ok || err != nil {
			t.Errorf("%s: %v, %v", c.name, ok, err)
		}
	}
}

// runs returns how often a server has run a command.
func runs(t *testing.T, s *redistest.Server, command string) (n int) {
	t.Helper()
	m := s.Do("INFO", "commandstats")
	info, err := m.ToString()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "cmdstat_"+command+":calls=%d,", &n); err == nil {
			return n
		}
	}
	return 0
}

// TestScriptsAreSentAgain to a server that has forgotten them, as one has that was
// started again or takes over; else only their names are sent.
func TestScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	everyCall(t, openStore(t, s.URL(), "shards=2"), func() { s.Do("SCRIPT", "FLUSH") })

	s.Do("CONFIG", "RESETSTAT")
	everyCall(t, openStore(t, s.URL(), "prefix=other", "shards=2"), func() {})
	if sent, named := runs(t, s, "eval"), runs(t, s, "evalsha"); sent > 2*len(allScripts) || named <= sent {
		t.Errorf("scripts were sent whole %d times, and named %d times", sent, named)
	}
	for _, sc := range allScripts {
		text, sha := sc.source()
		m := s.Do("SCRIPT", "EXISTS", sha)
		if known, err := m.AsIntSlice(); err != nil || known[0] != 1 {
			t.Errorf("%v, %v: no call has run %.200s", known, err, text)
		}
	}
	s.Do("CONFIG", "RESETSTAT")
	everyCall(t, openStore(t, s.URL(), "prefix=third", "shards=2"), func() {})
	if sent := runs(t, s, "eval"); sent > 0 {
		t.Errorf("scripts that the server knows were sent whole %d times", sent)
	}
}

// keysAt says which arguments of a command are keys.
var keysAt = map[string]func(args []string) []string{
	"TIME":    func([]string) []string { return nil },
	"PUBLISH": func([]string) []string { return nil },
	"EXISTS":  func(args []string) []string { return args },
}

func init() {
	for _, command := range strings.Fields(`GET SET DEL HDEL HGET HINCRBY HMGET HSET HSETNX
		ZADD ZCARD ZCOUNT ZMSCORE ZRANGE ZRANGEBYSCORE ZREM ZREVRANGEBYLEX ZSCORE`) {
		keysAt[command] = func(args []string) []string { return args[:1] }
	}
}

var (
	luaComment = regexp.MustCompile(`--.*`)
	luaCall    = regexp.MustCompile(`\b(call|redis\.pcall|earliest|rank|some)\(`)
	luaSets    = regexp.MustCompile(`(?:local zset = \(|zset in ipairs\()\{(.*)\}\)`)
	luaPart    = regexp.MustCompile(`[A-Z]+`)
)

// TestScriptsDeclareTheirKeys: a script may only use keys from KEYS, because a cluster and
// ACLs check those.
func TestScriptsDeclareTheirKeys(t *testing.T) {
	t.Parallel()
	shard := source(t, "shard")
	_, list, _ := strings.Cut(shard, "local ")
	list, _, ok := strings.Cut(list, " = unpack(KEYS)")
	declared := strings.Split(list, ", ")
	if !ok || len(declared) != len(keyNames) {
		t.Fatalf("shard.lua declares %q", declared)
	}
	for i, name := range declared {
		if strings.ToLower(name) != keyNames[i] {
			t.Errorf("shard.lua takes %q for %s", keyNames[i], name)
		}
	}
	operand := `(?:` + strings.Join(declared, "|") + `|KEYS\[(?:[123]|16)\]|zset)`
	isKey := regexp.MustCompile(`^(?:m\.rare and ` + operand + ` or )?` + operand + `$`)
	aliased := func(file, name string) {
		t.Helper()
		if !slices.Contains(declared, name) {
			t.Errorf("%s: %s is used as a key", file, name)
		}
	}

	files, err := fs.Glob(sources, "lua/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		text := source(t, strings.TrimSuffix(path.Base(file), ".lua"))
		for _, at := range luaCall.FindAllStringSubmatchIndex(text, -1) {
			name, args := text[at[2]:at[3]], arguments(text[at[1]:])
			if strings.HasSuffix(text[:at[0]], "function ") {
				continue
			}
			keys := args[:1]
			if strings.HasSuffix(name, "call") {
				command := strings.Trim(args[0], "'")
				find := keysAt[command]
				if find == nil {
					t.Errorf("%s: which arguments of %s are keys?", file, args[0])
					continue
				}
				keys = find(args[1:])
			}
			for _, key := range keys {
				if seen++; !isKey.MatchString(key) {
					t.Errorf("%s: the key %s in %s%s", file, key, name, args)
				}
			}
		}
		// What goes by zset are the declared keys, too.
		for _, m := range luaSets.FindAllStringSubmatch(text, -1) {
			for set := range strings.SplitSeq(m[1], ", ") {
				if _, value, named := strings.Cut(set, " = "); named {
					set = value
				}
				aliased(file, set)
			}
		}
		if _, parts, ok := strings.Cut(text, "local parts = {\n"); ok {
			parts, _, _ = strings.Cut(parts, "\n}\n")
			for _, m := range luaPart.FindAllStringSubmatch(parts, -1) {
				aliased(file, m[0])
			}
		}
	}
	if seen < 80 {
		t.Errorf("only %d keys were found: the scripts are not understood", seen)
	}
}

// source is a file of lua without its comments.
func source(t *testing.T, name string) string {
	t.Helper()
	b, err := sources.ReadFile("lua/" + name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	return luaComment.ReplaceAllString(string(b), "")
}

// arguments splits the arguments after the opening parenthesis of a call.
func arguments(text string) (args []string) {
	depth, from, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case depth > 0 && strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth == 0 && (c == ',' || c == ')'):
			args = append(args, strings.TrimSpace(text[from:i]))
			if from = i + 1; c == ')' {
				return args
			}
		}
	}
	return args
}

// TestKeysOfAShardAreInOneSlot, and shards in different ones.
func TestKeysOfAShardAreInOneSlot(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, redistest.Args("--cluster-enabled", "yes"))
	slot := func(key string) int64 {
		m := node.Do("CLUSTER", "KEYSLOT", key)
		n, err := m.AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	oneSlot := func(keys []string) int64 {
		for _, key := range keys[1:] {
			if slot(key) != slot(keys[0]) {
				t.Errorf("%s and %s are in different slots", key, keys[0])
			}
		}
		return slot(keys[0])
	}
	for _, prefix := range []string{"tarry", "a:b", strings.Repeat("x", maxPrefix)} {
		e := &Engine{prefix: prefix, shards: DefaultClusterShards}
		for _, name := range []string{"q", "queues", "a.0", "$()+-/;._", strings.Repeat("x", 200)} {
			slots := make(map[int64]bool)
			for _, s := range newQueue(e, name).shards {
				if len(s.keys) != len(keyNames) {
					t.Errorf("shard %d has the keys %q", s.n, s.keys)
				}
				slots[oneSlot(s.keys)] = true
			}
			if len(slots) < DefaultClusterShards-1 {
				t.Errorf("%d shards of %s are in %d slots", DefaultClusterShards, name, len(slots))
			}
		}
		oneSlot(newRegistry(prefix).keys())
	}
}
