package redisengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
)

// format is the format of docs/formats/redis.md.
const format = 3

// minVersion is the oldest supported Redis: since 7.0 a script can declare whether it may
// run when memory is full.
const minVersion = 7

// examine checks that the servers are suitable; of a cluster, all that answer.
func (e *Engine) examine(ctx context.Context, evict bool) error {
	if !e.cluster() {
		return e.suits(ctx, e.client, true, evict)
	}
	var last error
	answered := false
	for _, node := range e.client.Nodes() {
		switch err := e.suits(ctx, node, false, evict); {
		case errors.Is(err, engine.ErrUnavailable):
			last = err // the other nodes suffice
		case err != nil:
			return err
		default:
			answered = true
		}
	}
	if answered {
		return nil
	}
	return last
}

// suits checks one server and reads its clock.
func (e *Engine) suits(ctx context.Context, client rueidis.Client, master, evict bool) error {
	sent := time.Now()
	info, err := client.Do(ctx, client.B().Info().Build()).ToString()
	if err != nil {
		return fault("open", "", err)
	}
	facts := make(map[string]string)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		facts[name] = value
	}
	if us, err := strconv.ParseInt(facts["server_time_usec"], 10, 64); err == nil {
		e.clock.observe(us, sent, time.Now())
	}
	refuse := func(hint string, args ...any) error {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: fmt.Sprintf(hint, args...)}
	}
	version := facts["redis_version"]
	mode := cmp.Or(facts["server_mode"], facts["redis_mode"]) // Valkey names it server_mode
	major, _, _ := strings.Cut(version, ".")
	switch n, err := strconv.Atoi(major); {
	case err != nil:
		return refuse("the server reports no redis_version: is it Redis?")
	case n < minVersion:
		return refuse("this Redis is of version %s; tarry needs %d.0 or later", version, minVersion)
	case mode == "sentinel":
		return refuse("this is a Sentinel; use redis+sentinel://host:26379/NAME-OF-THE-MASTER")
	case master && mode == "cluster":
		return refuse("this Redis is a node of a cluster; use redis+cluster://")
	case master && facts["role"] == "slave":
		return refuse("this Redis is a read-only replica; use the master's address, redis+sentinel:// or redis+cluster://")
	}
	if policy := facts["maxmemory_policy"]; !evict && facts["maxmemory"] != "0" && strings.HasPrefix(policy, "allkeys-") {
		return refuse("this Redis evicts keys when its memory is full (maxmemory-policy %s), and messages with them; set maxmemory-policy noeviction, or open with evict=true", policy)
	}
	return nil
}

// describe creates or reads the description of the store and returns its number of shards.
func (e *Engine) describe(ctx context.Context, shards int) (int, error) {
	wanted := shards
	if wanted == 0 {
		wanted = DefaultShards
		if e.cluster() {
			wanted = DefaultClusterShards
		}
	}
	key := e.prefix + ":store"
	a := e.eval1(ctx, e.patient(), openScript, []string{key}, strconv.Itoa(format), strconv.Itoa(wanted))
	if a.err != nil {
		return 0, fault("open", "", a.err)
	}
	var is [2]int64
	for i := range is {
		if i >= len(a.values) {
			return 0, fault("open", "", errAnswer)
		}
		var err error
		if is[i], err = a.values[i].AsInt64(); err != nil {
			return 0, fault("open", "", errAnswer)
		}
	}
	refuse := func(hint string, args ...any) (int, error) {
		return 0, &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: fmt.Sprintf(hint, args...)}
	}
	switch {
	case is[0] != format:
		return refuse("the store at %s has format %d, and this tarry knows %d; use the tarry that made it", key, is[0], format)
	case is[1] < 1 || is[1] > MaxShards:
		return refuse("the store at %s claims %d shards", key, is[1])
	case shards != 0 && int64(shards) != is[1]:
		return refuse("the store with prefix %s has %d shards for each queue, not %d; to change it, push to a new prefix and run workers on both until the old store is empty", e.prefix, is[1], shards)
	}
	return int(is[1]), nil
}

// mayPublish checks, by a meaningless hint, that the user may publish. Scripts ignore a
// failing publish, so nothing else would report it.
func (e *Engine) mayPublish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	err := e.client.Do(ctx, e.client.B().Publish().Channel(e.channel).Message("").Build()).Error()
	if err = fault("open", "", err); errors.Is(err, engine.ErrForbidden) {
		return err
	}
	return nil // other errors show when they matter
}
