package from

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestFromBullMQ moves jobs stored as BullMQ 6.7 stores them.
func TestFromBullMQ(t *testing.T) {
	redis := redistest.Start(t)
	due := time.Now().Add(time.Hour).UnixMilli()
	add := func(id string, due int64, counter int) {
		redis.Do("HSET", "bull:mail:"+id, "name", "reminder", "data", `{"to":"`+id+`"}`, "opts", `{"attempts":3}`, "timestamp", "1", "delay", "1", "priority", "0")
		redis.Do("ZADD", "bull:mail:delayed", fmt.Sprint(due*4096+int64(counter)), id)
	}
	add("order-42", due, 0)
	add("7", due, 1)
	add("soon", time.Now().Add(30*time.Second).UnixMilli(), 0)
	p := follow(t, "bullmq.md", "127.0.0.1:6379", redis.Addr())
	p.program("redis-cli", "-p", fmt.Sprint(redis.Port(0)))
	p.run()
	p.run()
	if out := p.run(); !strings.Contains(out, "bull:mail:delayed  2       0     0        0     1") {
		t.Errorf("the move says %s", out)
	}
	if out := p.run(); !strings.HasPrefix(out, "1\n") || !strings.Contains(out, "order-42") {
		t.Errorf("in the end there are %s", out)
	}
	p.done()
	left := redis.Do("KEYS", "bull:mail:*")
	if keys, err := left.AsStrSlice(); len(keys) != 2 || err != nil {
		t.Errorf("BullMQ has %q, %v", keys, err)
	}
	c := p.client()
	p.has(c, "mail", "7", "order-42")
	for key, at := range map[string]int64{"order-42": due, "7": due + 1} { // rounded up
		if m, err := c.Get(t.Context(), tarry.ByKey(key).Of("mail")); err != nil || m.Due.UnixMilli() != at || m.Policy.MaxAttempts != 3 {
			t.Errorf("%+v, %v", m, err)
		}
	}
	if body := p.handled(c, mails, "order-42"); body.To != "order-42" {
		t.Errorf("a worker got %+v", body)
	}
}
