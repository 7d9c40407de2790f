package from

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

func TestFromRedisZSet(t *testing.T) {
	redis := redistest.Start(t)
	p := follow(t, "redis-zset.md", "127.0.0.1:6379", redis.Addr())
	p.program("redis-cli", "-p", fmt.Sprint(redis.Port(0)))
	if out := p.run(); strings.Fields(out)[len(strings.Fields(out))-1] != "1" {
		t.Errorf("the set by hand says %s", out)
	}
	now := time.Now()
	for member, due := range map[string]time.Time{"due": now, "soon": now.Add(30 * time.Second), "ann": now.Add(time.Hour)} {
		redis.Do("ZADD", "delayed", fmt.Sprint(due.UnixMilli()), member)
		redis.Do("HSET", "mail:"+member, "text", `{"to":"`+member+`"}`)
	}
	p.run()
	p.run()
	if out := p.run(); !strings.Contains(out, "delayed  1       0     0        0     2") {
		t.Errorf("the move says %s", out)
	}
	moved := redis.Do("EVAL", p.blocks("lua")[0], "2", "delayed", "ready", fmt.Sprint(now.Add(time.Second).UnixMilli()))
	if n, err := moved.AsInt64(); n != 1 || err != nil {
		t.Errorf("the script moves %d, %v", n, err)
	}
	if out := p.run(); !strings.HasPrefix(out, "1\n") || !strings.Contains(out, "ann") {
		t.Errorf("in the end there are %s", out)
	}
	p.done()
	c := p.client()
	p.has(c, "mail", "ann")
	if body := p.handled(c, mails, "ann"); body.To != "ann" {
		t.Errorf("a worker got %+v", body)
	}
}
